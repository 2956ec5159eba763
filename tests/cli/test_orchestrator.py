"""The pod of docs/how-to/serving.md: its options are ours, its probes are there, and its times fit together."""

import re
from pathlib import Path

import yaml

from ouzel.api.operations import OPERATIONS
from ouzel.observability import EngineReading, Metrics, exposition
from ouzel.options.command_line import read_command_line

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "serving.md"


def test_the_pod_of_the_document() -> None:
    text = DOCUMENT.read_text().partition("## Running under an orchestrator")[2]
    pod = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])["spec"]
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


def test_the_metrics_of_the_document_are_there() -> None:
    text = DOCUMENT.read_text()
    metrics_text = exposition(
        [
            (
                Metrics("m"),
                [EngineReading(num_restarts=0, step_age_s=0.0, block_size=16, num_blocks=1)],
            )
        ]
    )

    named = set(re.findall(r"`((?:vllm:|ouzel_)[a-z_]+)`", text))
    assert len(named) >= 9
    assert [name for name in named if f"# TYPE {name} " not in metrics_text] == []
