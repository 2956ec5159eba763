"""A cluster of Ray on this machine, with Ouzel on it as `serve deploy` puts it there.

Ray is too large for the environment of the other tests: it is installed into one of its own, from the extra `ray`, into
`~/.cache/ouzel-tests/ray` or where `OUZEL_TESTS_RAY_DIR` says, when a test first wants it.
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
    "RAY_raylet_start_wait_time_s": "180",  # a busy machine
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "90",
    "RAY_SERVE_ENABLE_HA_PROXY": "1",
    "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY": "1",
    "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "5",
    "RAY_SERVE_HAPROXY_HARD_STOP_AFTER_S": "600",  # a busy machine, again
    "RAY_SERVE_HAPROXY_RETRIES": "8",  # with fewer a HAProxy that was replaced gives up before it knows who is gone
    "RAY_SERVE_HAPROXY_NBTHREAD": "1",
    "RAY_SERVE_HAPROXY_MAXCONN": "512",
}


def installed() -> Path:
    """The directory with Ray's programs; they are installed first where they are missing."""
    kept = os.environ.get(DIRECTORY_VARIABLE)
    directory = Path(kept) if kept else Path.home() / ".cache" / "ouzel-tests" / "ray"
    complete = directory / ".complete"
    if not complete.exists():
        uv = os.environ.get("UV") or shutil.which("uv")
        assert uv is not None, "there is no uv, which installs Ray"
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, directory], check=True
        )
        python = directory / "bin" / "python"
        extras = f"{ROOT}[ray,postgres]"
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--editable", extras], check=True
        )
        complete.touch()
    return directory / "bin"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(frozen=True)
class Cluster:
    url: str
    dashboard: str
    options: Mapping[str, Any]

    def deploy(self, arguments: Mapping[str, Any], **deployment: Any) -> None:
        """Does what `serve deploy` does with a file that says this."""
        application: dict[str, Any] = {"args": {**self.options, **arguments}}
        if deployment:
            application["deployments"] = [{"name": "Ouzel", **deployment}]
        self.deploy_from("ouzel.cluster.ray:build", application)

    def deploy_from(self, import_path: str, application: Mapping[str, Any]) -> None:
        """Takes fields of an application; the replicas are a deployment named Ouzel."""
        named = {"name": "ouzel", "route_prefix": "/", "import_path": import_path, **application}
        content: dict[str, Any] = {"proxy_location": "HeadOnly", "applications": [named]}
        content["http_options"] = {"host": "127.0.0.1", "port": httpx.URL(self.url).port}
        answer = httpx.put(f"{self.dashboard}/api/serve/applications/", json=content, timeout=None)
        assert answer.status_code == 200, answer.text

    def application(self) -> dict[str, Any]:
        applications = httpx.get(f"{self.dashboard}/api/serve/applications/", timeout=None).json()[
            "applications"
        ]
        found: dict[str, Any] = applications.get("ouzel", {})
        return found

    def replicas(self) -> dict[str, int]:
        """The processes of the replicas that there are, those that still end included, by their ids."""
        replicas = self.application().get("deployments", {}).get("Ouzel", {}).get("replicas", [])
        return {replica["replica_id"]: replica.get("pid") or 0 for replica in replicas}

    def doors(self) -> list[int]:
        """The processes of the doors that are asked."""
        doors = (
            self.application()
            .get("deployments", {})
            .get("OuzelReplicaChooser", {})
            .get("replicas", [])
        )
        return [door["pid"] for door in doors if door["state"] == "RUNNING"]

    def wait_for(self, num_replicas: int) -> None:
        """Waits until there are so many replicas, and a door where one is wanted, and all is well."""
        while True:
            application, processes = self.application(), self.replicas().values()
            assert application.get("status") != "DEPLOY_FAILED", application
            is_running = application.get("status") == "RUNNING"
            has_door = self.doors() or "OuzelReplicaChooser" not in application.get(
                "deployments", {}
            )
            if is_running and has_door and len(processes) == num_replicas and all(processes):
                return
            time.sleep(0.5)


@contextmanager
def running_cluster(store_url: str, models: Path) -> Iterator[Cluster]:
    """`models` is a file for `config`."""
    programs = installed()
    ports = {
        name: free_port() for name in ("gcs", "dashboard", "agent", "http", "stats", "metrics")
    }
    with tempfile.TemporaryDirectory(
        prefix="or-"
    ) as directory:  # short: a socket's path may have 97 bytes
        environment = {**os.environ, **ENVIRONMENT, "OUZEL_STORE_URL": store_url}
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
        environment.pop("PYTHONPATH", None)
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
