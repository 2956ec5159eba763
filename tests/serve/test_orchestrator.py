"""Checks the pod and the metrics of docs/how-to/run-under-an-orchestrator.md."""

import re
from pathlib import Path

import yaml

from ouzel.api.operations import OPERATIONS
from ouzel.observability import EngineReading, Metrics, exposition
from ouzel.observability.model_series import ModelReading, write_model_metrics
from ouzel.options.command_line import read_command_line

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "run-under-an-orchestrator.md"


def test_the_pod_of_the_document() -> None:
    pod = yaml.safe_load(DOCUMENT.read_text().partition("```yaml\n")[2].partition("```")[0])["spec"]
    [container] = pod["containers"]

    options = read_command_line(container["args"][1:], {})
    probes = {path for operation in OPERATIONS if operation.is_probe for path in operation.paths}
    asked = {
        container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "readiness", "liveness")
    }

    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": options.server.port, "metrics": options.observability.metrics_port}
    assert asked <= probes
    stop_s = options.limits.drain_grace_s + options.limits.drain_timeout_s
    assert pod["terminationGracePeriodSeconds"] >= stop_s + 20


def test_the_metrics_of_the_documents_are_there() -> None:
    text = "".join(page.read_text() for page in DOCUMENT.parent.glob("*.md"))
    metrics_text = exposition(
        [
            (
                Metrics("m"),
                [EngineReading(num_restarts=0, step_age_s=0.0, block_size=16, num_blocks=1)],
            )
        ]
    )
    reading = ModelReading(
        name="m",
        state="idle",
        is_loaded=True,
        num_open=0,
        num_loads=1,
        loading_s=1.0,
        num_failures=0,
        num_evictions=0,
        num_bytes=1,
    )
    metrics_text += write_model_metrics([reading], num_waiting=0)

    named = set(re.findall(r"`((?:vllm:|ouzel_)[a-z_]+)`", text))
    assert len(named) >= 9
    assert [name for name in named if f"# TYPE {name} " not in metrics_text] == []
