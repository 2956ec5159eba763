"""Runs a Ray cluster on this machine, with Ouzel deployed as `serve deploy` does.

Ray is too large for the environment of the other tests. The first test that needs Ray installs Ray,
and Ouzel's other requirements, into an environment in `~/.cache/ouzel-tests/ray` or in
`OUZEL_TESTS_RAY_DIR`. Several checkouts may share this environment: it has no Ouzel, and Ray's
processes import Ouzel from the checkout whose tests run.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import httpx

ROOT = Path(__file__).parents[2]
DIRECTORY_VARIABLE = "OUZEL_TESTS_RAY_DIR"
OPTIONS = {"kv_cache_gib": 0.05, "log_level": "warning", "num_cpus": 0.5, "drain_timeout_s": 200}
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Below `uv run pytest`, Ray would start its workers with `uv run` in the tests' environment.
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_raylet_start_wait_time_s": "180",  # a busy machine
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "90",
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY": "1",
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "5",
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "600",  # the machine may be busy
    # with fewer retries, a replaced HAProxy gives up before it knows which replicas are gone
    "RAY_SERVE_HAPROXY_RETRIES": "8",
    "RAY_SERVE_HAPROXY_NBTHREAD": "1",
    "RAY_SERVE_HAPROXY_MAXCONN": "512",
}


def install_ray() -> Path:
    """Installs missing or outdated packages for Ray; returns the directory with its programs."""
    kept = os.environ.get(DIRECTORY_VARIABLE)
    directory = Path(kept) if kept else Path.home() / ".cache" / "ouzel-tests" / "ray"
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv is not None, "there is no uv, which installs Ray"
    python = directory / "bin" / "python"
    project = ROOT / "pyproject.toml"
    if not python.exists():
        create = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(directory)]
        subprocess.run(create, check=True)
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(project)]
    subprocess.run([*install, "--extra", "ray", "--extra", "postgres"], check=True)
    return directory / "bin"


def ray_environment() -> dict[str, str]:
    """Returns the variables with which Ray's processes import Ouzel from this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    url: str
    dashboard: str
    options: Mapping[str, Any]

    def deploy(self, arguments: Mapping[str, Any], **deployment: Any) -> None:
        """Deploys the application as `serve deploy` does with a file of the same content."""
        application: dict[str, Any] = {"args": {**self.options, **arguments}}
        if deployment:
            application["deployments"] = [{"name": "Ouzel", **deployment}]
        self.deploy_from("ouzel.cluster.ray:build", application)

    def deploy_from(self, import_path: str, application: Mapping[str, Any]) -> None:
        """Deploys an application by its fields; the replicas are a deployment named Ouzel."""
        named = {"name": "ouzel", "route_prefix": "/", "import_path": import_path, **application}
        content: dict[str, Any] = {"proxy_location": "HeadOnly", "applications": [named]}
        content["http_options"] = {"host": "127.0.0.1", "port": httpx.URL(self.url).port}
        answer = httpx.put(f"{self.dashboard}/api/serve/applications/", json=content, timeout=None)
        assert answer.status_code == 200, f"{answer.status_code} {answer.text}"

    def application(self) -> dict[str, Any]:
        applications = httpx.get(f"{self.dashboard}/api/serve/applications/", timeout=None).json()[
            "applications"
        ]
        found: dict[str, Any] = applications.get("ouzel", {})
        return found

    def replicas(self) -> dict[str, int]:
        """Returns each replica's process id by the replica's id; ending replicas count."""
        replicas = self.application().get("deployments", {}).get("Ouzel", {}).get("replicas", [])
        return {replica["replica_id"]: replica.get("pid") or 0 for replica in replicas}

    def replica_choosers(self) -> list[int]:
        """Returns the process ids of the running replica choosers, which route requests."""
        deployments = self.application().get("deployments", {})
        choosers = deployments.get("OuzelReplicaChooser", {}).get("replicas", [])
        return [chooser["pid"] for chooser in choosers if chooser["state"] == "RUNNING"]

    def wait_for(self, num_replicas: int) -> None:
        """Waits until the application runs `num_replicas` replicas, and its chooser if any."""
        while True:
            application, processes = self.application(), self.replicas().values()
            assert application.get("status") != "DEPLOY_FAILED", application
            is_running = application.get("status") == "RUNNING"
            deployments = application.get("deployments", {})
            has_chooser = self.replica_choosers() or "OuzelReplicaChooser" not in deployments
            if is_running and has_chooser and len(processes) == num_replicas and all(processes):
                return
            time.sleep(0.5)


@contextmanager
def running_cluster(store_url: str, models: Path) -> Iterator[Cluster]:
    """Runs a cluster; `models` is a file for `config`."""
    programs = install_ray()
    ports = {
        name: find_free_port() for name in ("gcs", "dashboard", "agent", "http", "stats", "metrics")
    }
    with tempfile.TemporaryDirectory(
        prefix="or-"
    ) as directory:  # short: a socket's path may have 97 bytes
        environment = {**ray_environment(), **ENVIRONMENT, "OUZEL_STORE_URL": store_url}
        environment |= {
            "OUZEL_CACHE_DIR": f"{directory}/cache",
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        environment |= {
            "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": f"{directory}/h/haproxy.cfg",
            "RAY_SERVE_HAPROXY_SOCKET_PATH": f"{directory}/h/admin.sock",
            "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": f"{directory}/h",
            "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": f"{directory}/h/server-state",
            "RAY_SERVE_HAPROXY_STATS_PORT": str(ports["stats"]),
            "RAY_SERVE_HAPROXY_METRICS_PORT": str(ports["metrics"]),
        }
        command = [
            str(programs / "ray"),
            "start",
            "--head",
            "--block",
            "--num-cpus=4",
            "--temp-dir",
            directory,
        ]
        command += [f"--port={ports['gcs']}", f"--dashboard-port={ports['dashboard']}"]
        command += [f"--dashboard-agent-listen-port={ports['agent']}"]
        command += [
            "--object-store-memory=100000000",
            "--disable-usage-stats",
            "--node-ip-address=127.0.0.1",
        ]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        dashboard = f"http://127.0.0.1:{ports['dashboard']}"
        try:
            _wait_for_dashboard(dashboard, process)
            yield Cluster(
                f"http://127.0.0.1:{ports['http']}", dashboard, {**OPTIONS, "config": str(models)}
            )
        finally:
            process.terminate()
            process.wait()


def _wait_for_dashboard(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            if httpx.get(f"{url}/api/serve/applications/", timeout=None).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(1)
    raise AssertionError(f"ray start ended with {process.returncode}")
