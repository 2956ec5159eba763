"""A running server downloads models from a stand-in for the hub, and deletes them."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import httpx
import psutil
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.cli.test_pull import environment
from tests.model_store.hub import REVISION, Hub, serving_hub
from tests.serve.running import RunningServer, serving

ADMIN = {"authorization": "Bearer sk-admin"}
MODEL = "owner/model"
SIZE, CUT = 24 * 2**20, 9 * 2**20
PATIENT = {"HF_HUB_DOWNLOAD_TIMEOUT": "600"}  # a held connection lasts as long as the test needs
# No file may become longer than 16 MiB; the limit has units of 1024 bytes.
SMALL_FILES = ("bash", "-c", 'ulimit -f 16384 && exec "$@"', "bash")


@dataclass
class Setting:
    server: RunningServer
    hub: Hub
    repository: Path  # the directory of the model in the hub's cache

    @property
    def snapshot(self) -> Path:
        return self.repository / "snapshots" / REVISION

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.root, timeout=None, headers=ADMIN)

    def pull(self, **fields: Any) -> list[dict[str, Any]]:
        with self.client() as http:
            response = http.post("/v1/models/pull", json={"model": MODEL, **fields})
        return list(read_events(response.text.splitlines()))

    def delete(self, name: str = MODEL) -> httpx.Response:
        with self.client() as http:
            return http.delete(f"/v1/models/{name}")

    def downloading_processes(self) -> list[psutil.Process]:
        children = psutil.Process(self.server.process.pid).children()
        return [child for child in children if is_downloading(child)]


def is_downloading(process: psutil.Process) -> bool:
    try:
        return "store_child" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


def read_events(lines: Iterator[str] | list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.01)


@contextmanager
def serving_admin(env: Mapping[str, str], directory: Path, **fields: Any) -> Iterator[Any]:
    arguments = ("--admin-api-key", "sk-admin", "--no-store")
    with serving(*arguments, cache_dir=directory, environment=env, **fields) as server:
        yield server


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """A server and a hub whose model has random weights: it can be downloaded, but not loaded."""
    directory = tmp_path_factory.mktemp("pulls")
    repository = directory / "repository"
    shutil.copytree(MODEL_DIRECTORY, repository)
    (repository / "more.safetensors").write_bytes(bytes(range(256)) * (SIZE // 256))
    with serving_hub(repository) as hub:
        env = environment(directory, hub.url, **PATIENT)
        with serving_admin(env, directory / "cache") as server:
            yield Setting(server, hub, directory / "hf/hub/models--owner--model")


@pytest.fixture
def setting(running: Setting) -> Iterator[Setting]:
    yield running
    running.hub.__dict__.update(Hub(running.hub.directory, running.hub.url).__dict__)
    shutil.rmtree(running.repository, ignore_errors=True)


def test_a_pulled_model_is_loaded_asked_and_deleted(setting: Setting) -> None:
    events = setting.pull()
    with setting.client() as http:
        loaded = http.post("/v1/models/load", json={"name": "new", "model": MODEL})
        body = {"model": "new", "messages": [{"role": "user", "content": "12+5?"}]}
        answer = http.post("/v1/chat/completions", json=body | {"temperature": 0})
        refused = setting.delete()
        http.post("/v1/models/unload", json={"name": "new"})
    deleted = setting.delete()

    assert events[-1]["status"] == "done"
    assert events[-1]["bytes_done"] == events[-1]["bytes_total"] > SIZE
    assert loaded.status_code == 200, loaded.text
    assert answer.json()["choices"][0]["message"]["content"] == "12 + 5 = 17"
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        409,
        f"{MODEL} is loaded; unload it first: POST /v1/models/unload",
    )
    assert deleted.status_code == 200
    assert deleted.json()["freed_bytes"] > SIZE
    assert not setting.repository.exists()


def test_a_pulled_model_is_loaded_for_a_request_where_models_come_and_go(
    setting: Setting, tmp_path: Path
) -> None:
    arguments = ("--admin-api-key", "sk-admin", "--no-store", "--load-on-request")
    env = environment(setting.hub.directory.parent, setting.hub.url)
    with (
        serving(*arguments, cache_dir=tmp_path, environment=env) as server,
        httpx.Client(base_url=server.root, timeout=None, headers=ADMIN) as http,
    ):
        http.post("/v1/models/pull", json={"model": MODEL}).raise_for_status()
        assert http.get(f"/v1/models/{MODEL}").json()["state"] == "on_disk"
        body = {"model": MODEL, "messages": [{"role": "user", "content": "12+5?"}]}
        answer = http.post("/v1/chat/completions", json=body | {"temperature": 0})
        assert answer.json()["choices"][0]["message"]["content"] == "12 + 5 = 17"
        [_, pulled] = http.get("/api/ps").json()["models"]
        assert pulled["expires_at"] < "2300"
        assert http.delete(f"/v1/models/{MODEL}").status_code == 409
        http.post("/v1/models/unload", json={"name": MODEL}).raise_for_status()
        assert http.delete(f"/v1/models/{MODEL}").status_code == 200
        assert http.get(f"/v1/models/{MODEL}").status_code == 404
        assert http.post("/v1/chat/completions", json=body).status_code == 404

        # a model under another name, and a model in a user's own directory
        http.post("/v1/models/pull", json={"model": MODEL}).raise_for_status()
        for name, source in {"fast": MODEL, "mine": str(MODEL_DIRECTORY)}.items():
            entry = {"name": name, "model": source, "max_model_len": 512}
            http.post("/v1/models/load", json=entry).raise_for_status()
            http.post("/v1/models/unload", json={"name": name}).raise_for_status()
        assert http.delete("/v1/models/mine").status_code == 404
        assert http.get("/v1/models/mine").json()["state"] == "on_disk"
        answer = http.post("/v1/chat/completions", json=body | {"model": "mine", "temperature": 0})
        assert answer.json()["choices"][0]["message"]["content"] == "12 + 5 = 17"
        assert http.delete("/v1/models/fast").status_code == 200
        assert not setting.repository.exists()
        for name in ("nope", "~nosuch", "x" * 300):
            assert http.delete(f"/v1/models/{name}").status_code == 404, name


def test_a_pull_goes_on_after_the_hub_has_cut_the_connection(setting: Setting) -> None:
    setting.hub.cut_after_bytes, setting.hub.num_cuts = CUT, 1
    events = setting.pull()

    assert events[-1]["status"] == "done"
    assert setting.hub.ranges() == [f"bytes={CUT}-"]
    done = [event["bytes_done"] for event in events if event["status"] == "downloading"]
    assert done == sorted(done)
    original = setting.hub.directory / "more.safetensors"
    assert (setting.snapshot / "more.safetensors").read_bytes() == original.read_bytes()


@pytest.mark.parametrize("name", ["more.safetensors", "config.json"], ids=["large", "small"])
def test_a_file_of_another_content_is_refused(setting: Setting, name: str) -> None:
    setting.hub.etag, setting.hub.etag_of = "0" * 64, name
    [*_, last] = setting.pull()
    with setting.client() as http:
        present = http.post("/api/pull", json={"model": MODEL}, headers={"authorization": ""})

    assert f"{name} came otherwise than the hub says" in last["error"]["message"]
    assert not (setting.repository / "blobs" / setting.hub.etag).exists()
    assert not (setting.snapshot / name).is_symlink()
    assert present.status_code == 401  # the model is not here


def test_a_pull_that_does_not_fit_on_the_disk_names_the_sizes(setting: Setting) -> None:
    setting.hub.claimed_bytes = 10**18
    [*_, last] = setting.pull()

    assert last["error"]["code"] == "insufficient_storage"
    assert "000000000 GB are still to be fetched" in last["error"]["message"]
    assert "free" in last["error"]["message"]
    assert not [request for request in setting.hub.requests if request.startswith("GET /owner")]


def test_a_closed_connection_stops_the_download_and_the_next_one_continues(
    setting: Setting,
) -> None:
    hub = setting.hub
    hub.cut_after_bytes, hub.num_cuts, hub.holds_back = CUT, 1, threading.Event()
    with (
        setting.client() as http,
        http.stream("POST", "/v1/models/pull", json={"model": MODEL}) as stream,
    ):
        events = read_events(stream.iter_lines())
        first = next(events)
        wait_until(lambda: sum_incomplete(setting.repository) == CUT)
        num_running = len(setting.downloading_processes())
    wait_until(lambda: not setting.downloading_processes())
    hub.holds_back.set()
    [incomplete] = setting.repository.glob("blobs/*.incomplete")
    named = [*setting.repository.glob("snapshots/*/*.safetensors")]

    assert first["status"] == "listing"
    assert num_running == 1
    assert incomplete.stat().st_size == CUT
    assert named == []
    assert setting.pull()[-1]["status"] == "done"
    assert hub.ranges() == [f"bytes={CUT}-"]


def test_two_clients_share_one_download(setting: Setting) -> None:
    hub = setting.hub
    hub.cut_after_bytes, hub.num_cuts, hub.holds_back = CUT, 1, threading.Event()
    ends: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: ends.append(setting.pull()[-1])) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: sum_incomplete(setting.repository) == CUT)
    num_running = len(setting.downloading_processes())
    hub.holds_back.set()
    for thread in threads:
        thread.join()

    assert num_running == 1
    assert [end["status"] for end in ends] == ["done", "done"]
    assert len(hub.ranges()) == 1


def test_a_download_ends_with_a_killed_server_and_the_next_server_continues(
    tmp_path: Path, setting: Setting
) -> None:
    hub = setting.hub
    hub.cut_after_bytes, hub.num_cuts, hub.holds_back = CUT, 1, threading.Event()
    env = environment(tmp_path, hub.url, **PATIENT)
    repository = tmp_path / "hf/hub/models--owner--model"
    with serving_admin(env, tmp_path / "cache", is_executed=True) as server:
        own = Setting(server, hub, repository)
        pulling = threading.Thread(target=pull_until_cut, args=(own,))
        pulling.start()
        wait_until(lambda: sum_incomplete(repository) == CUT)
        [child] = own.downloading_processes()
        server.process.kill()
        pulling.join()
        wait_until(lambda: not is_downloading(child))
    hub.holds_back.set()
    with serving_admin(env, tmp_path / "cache", is_executed=True) as server:
        events = Setting(server, hub, repository).pull()

    assert events[-1]["status"] == "done"
    assert len(hub.ranges()) == 1


def sum_incomplete(repository: Path) -> int:
    return sum(path.stat().st_size for path in repository.glob("blobs/*.incomplete"))


def pull_until_cut(setting: Setting) -> None:
    with pytest.raises(httpx.TransportError):
        setting.pull()


def test_a_disk_that_gets_full_is_named_and_the_server_goes_on(
    tmp_path: Path, setting: Setting
) -> None:
    env = environment(tmp_path, setting.hub.url)
    with serving_admin(env, tmp_path / "cache", wrapper=SMALL_FILES) as server:
        own = Setting(server, setting.hub, tmp_path / "hf/hub/models--owner--model")
        [*_, last] = own.pull()
        with own.client() as http:
            health = http.get("/health")
        deleted = own.delete()

    assert last["error"]["code"] == "insufficient_storage"
    assert "has no room for the files (File too large)" in last["error"]["message"]
    assert health.status_code == 200
    assert deleted.status_code == 200  # removes the part that has arrived
    assert not own.repository.exists()
