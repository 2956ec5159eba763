"""Checks `deploy/` with the tools of its users: helm, Docker Compose, promtool, hadolint, haproxy.

    python -m tools.deploy.check

The program installs these tools (`installing.py`) and needs no cluster. It exits with 1 if a check
fails or a tool cannot be installed. `tests/deploy/` has the checks that need no tool.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any  # YAML

import yaml

from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import read_options
from tools.deploy import inference_pool, installing
from tools.deploy.containerfile import ROOT
from tools.deploy.dashboard import dashboard

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "ouzel"
CASES = (
    None,
    CHART / "values-inferencepool.yaml",
    *sorted((ROOT / "tests" / "deploy" / "values").glob("*.yaml")),
)
REFUSED = (  # values that exclude each other
    {"store.volume.enabled": "true", "store.url": "postgresql://host/name"},
    {"store.volume.enabled": "true", "replicas": "2"},
    {"store.volume.enabled": "true", "autoscaling.kind": "keda"},
    {"store.existingSecret": "store", "store.url": "postgresql://host/name"},
    {"apiKeys.existingSecret": "keys", "apiKeys.keys": "{one}"},
)
KUBERNETES_VERSIONS = ("1.29", "1.32", "1.35")
_BUILT_IN = ("v1", "apps/", "policy/", "autoscaling/", "networking.k8s.io/")


def main() -> int:
    status = 0
    for name, check in CHECKS.items():
        try:
            complaints = list(check())
        except installing.NotInstalledError as error:
            complaints = [f"not checked: {error}"]
        print(f"{'FAILED' if complaints else 'ok':7}{name}")
        for complaint in complaints:
            print(f"       {complaint}")
            status = 1
    return status


def _containerfile() -> Iterator[str]:
    yield from _complaints(installing.hadolint(), DEPLOY / "Containerfile")


def _compose() -> Iterator[str]:
    secrets = {"POSTGRES_PASSWORD": "a", "OUZEL_API_KEY": "b"}
    file = DEPLOY / "compose" / "compose.yaml"
    yield from _complaints(
        installing.compose(), "--file", file, "config", "--quiet", environment=secrets
    )
    for missing in secrets:
        rest = {name: value for name, value in secrets.items() if name != missing}
        if not list(
            _complaints(installing.compose(), "--file", file, "config", "--quiet", environment=rest)
        ):
            yield f"it starts without {missing}"


def _retrieval() -> Iterator[str]:
    file = DEPLOY / "compose" / "retrieval" / "compose.yaml"
    command = (installing.compose(), "--file", file, "config", "--quiet")
    yield from _complaints(*command, environment={"OUZEL_API_KEY": "a"})
    if not list(_complaints(*command)):
        yield "it starts without OUZEL_API_KEY"


def _proxy() -> Iterator[str]:
    yield from _complaints(installing.haproxy(), "-c", "-f", DEPLOY / "compose" / "haproxy.cfg")


def _chart() -> Iterator[str]:
    for case in CASES:
        values = () if case is None else ("--values", case)
        yield from _complaints(installing.helm(), "lint", "--strict", "--quiet", CHART, *values)


def _check_refusals() -> Iterator[str]:
    for values in REFUSED:
        settings = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        if not list(_complaints(installing.helm(), "template", "ouzel", CHART, *settings)):
            yield f"{values} is taken"


def _kubernetes_objects() -> Iterator[str]:
    """Checks the chart's objects by Kubernetes' own schemas, which allow no unknown field."""
    program = [sys.executable, "-m", "kubernetes_validate", "--strict", "--quiet", "--no-warn"]
    environment = {"PYTHONPATH": str(installing.kubernetes_validate())}
    for case, objects in _render_charts():
        built_in = [each for each in objects if each["apiVersion"].startswith(_BUILT_IN)]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(built_in, file)
            file.flush()
            for version in KUBERNETES_VERSIONS:
                command = [*program, "--kubernetes-version", version, file.name]
                for complaint in _complaints(*command, environment=environment):
                    yield f"{case}, Kubernetes {version}: {complaint}"


def _custom_resources() -> Iterator[str]:
    directory = installing.schemas()
    for case, objects in _render_charts():
        custom = [each for each in objects if not each["apiVersion"].startswith(_BUILT_IN)]
        pools = [each for each in custom if each["kind"] == "InferencePool"]
        others = [each for each in custom if each["kind"] != "InferencePool"]
        command = ["node", str(directory / "custom_resources.mjs")]
        result = subprocess.run(
            command, input=json.dumps(others), capture_output=True, text=True, check=False
        )
        complaints = (result.stdout + result.stderr).splitlines()
        for complaint in (
            *complaints,
            *(said for pool in pools for said in inference_pool.complaints(pool)),
        ):
            yield f"{case}: {complaint}"


def _options() -> Iterator[str]:
    """Checks that the server reads the ConfigMap's file, and that a pod has the time to drain."""
    for case, objects in _render_charts():
        [pod] = [
            each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"
        ]
        [text] = [
            each["data"]["ouzel.yaml"] for each in objects if "ouzel.yaml" in each.get("data", {})
        ]
        with tempfile.TemporaryDirectory() as directory:
            keys, file = Path(directory) / "keys", Path(directory) / "ouzel.yaml"
            keys.write_text("key\n")
            file.write_text(text.replace("/etc/ouzel/keys/api-keys", str(keys)))
            try:
                limits = read_options({"config": str(file)}, {}).limits
            except InvalidOption as error:
                yield f"{case}: {error}"
                continue
        if (
            limits.drain_grace_s + limits.drain_timeout_s + 20
            > pod["terminationGracePeriodSeconds"]
        ):
            yield f"{case}: pods are killed before they have drained"


def _alerts() -> Iterator[str]:
    directory = DEPLOY / "prometheus"
    yield from _complaints(installing.promtool(), "check", "rules", directory / "alerts.yaml")
    yield from _complaints(installing.promtool(), "test", "rules", directory / "alerts_test.yaml")


def _dashboard() -> Iterator[str]:
    """Checks the dashboard's queries: each becomes a rule, so that promtool reads it."""
    queries = [
        target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())
    ]
    rules = [
        {"record": f"query_{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}, file)
        file.flush()
        yield from _complaints(installing.promtool(), "check", "rules", file.name)


CHECKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "Containerfile (hadolint)": _containerfile,
    "compose.yaml (docker-compose config)": _compose,
    "retrieval/compose.yaml (docker-compose config)": _retrieval,
    "haproxy.cfg (haproxy -c)": _proxy,
    "the chart (helm lint)": _chart,
    "what excludes each other is refused (helm template)": _check_refusals,
    "its objects (helm template; schemas of Kubernetes)": _kubernetes_objects,
    "its custom resources (schemas of their makers)": _custom_resources,
    "its options (as the server reads them)": _options,
    "alerts.yaml (promtool check, promtool test)": _alerts,
    "the dashboard's queries (promtool check)": _dashboard,
}


def _render_charts() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for case in CASES:
        values = () if case is None else ("--values", case)
        command = [installing.helm(), "template", "release", CHART, "--namespace", "llm", *values]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            continue  # `helm lint` says why
        yield (
            case.name if case else "values.yaml",
            [each for each in yaml.safe_load_all(result.stdout) if each],
        )


def _complaints(
    *command: str | Path, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OUZEL_", "POSTGRES_"))
    }
    result = subprocess.run(
        command,
        env=inherited | dict(environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        yield from (result.stdout + result.stderr).strip().splitlines() or [
            f"status {result.returncode}"
        ]


if __name__ == "__main__":
    sys.exit(main())
