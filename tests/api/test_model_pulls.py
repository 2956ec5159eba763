"""Models are downloaded and deleted by POST /v1/models/pull and DELETE /v1/models/{name}."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.model_pulls import MAX_DOWNLOADS
from ouzel.config import LimitsConfig, ServerConfig
from tests.api.pulling import NUM_BYTES, ScriptedPuller, wait_until
from tests.api.server_setup import ALIAS
from tests.api.serving import RunningServer, running_server

ADMIN = {"authorization": "Bearer sk-admin"}
PULL = "/v1/models/pull"


@pytest.fixture
def puller() -> ScriptedPuller:
    return ScriptedPuller()


@pytest.fixture
def server(puller: ScriptedPuller) -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(admin_api_key="sk-admin"), puller=puller) as server:
        yield server
        puller.may_end.set()


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def pull(http: httpx.Client, model: str, **fields: Any) -> httpx.Response:
    return http.post(PULL, json={"model": model, **fields}, headers=ADMIN)


def delete(http: httpx.Client, model: str) -> httpx.Response:
    return http.delete(f"/v1/models/{model}", headers=ADMIN)


def read_events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


class Follower:
    """A client that has begun to read the events of a pull."""

    def __init__(self, stack: ExitStack, http: httpx.Client, model: str) -> None:
        self._response = stack.enter_context(
            http.stream("POST", PULL, json={"model": model}, headers=ADMIN)
        )
        self._events = read_events(self._response.iter_lines())

    def read_until(self, status: str) -> dict[str, Any]:
        event = next(self._events)
        while event["status"] != status:
            event = next(self._events)
        return event

    def read_rest(self) -> list[dict[str, Any]]:
        return list(self._events)

    def leave(self) -> None:
        self._response.close()


def test_a_pull_tells_its_progress(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.may_end.set()
    response = pull(http, "owner/model")
    events = list(read_events(response.iter_lines()))

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("data: [DONE]\n\n")
    assert events[0]["status"] == "listing"
    assert events[-1] == {
        "object": "model.pull",
        "model": "owner/model",
        "status": "done",
        "files_done": 1,
        "files_total": 1,
        "bytes_done": NUM_BYTES,
        "bytes_total": NUM_BYTES,
    }


def test_a_pull_without_a_stream_is_one_object(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.may_end.set()
    response = pull(http, "owner/model", stream=False)

    assert (response.status_code, response.json()["status"]) == (200, "done")


def test_a_pull_tells_the_bytes_that_are_here(http: httpx.Client, puller: ScriptedPuller) -> None:
    with ExitStack() as stack:
        follower = Follower(stack, http, "owner/model")
        event = follower.read_until("downloading")

    assert (event["bytes_done"], event["bytes_total"], event["files_done"]) == (50, NUM_BYTES, 0)


def test_two_clients_follow_one_download(http: httpx.Client, puller: ScriptedPuller) -> None:
    with ExitStack() as stack:
        followers = [Follower(stack, http, "owner/model") for _ in range(2)]
        seen = [follower.read_until("downloading") for follower in followers]
        puller.may_end.set()
        ends = [follower.read_rest()[-1]["status"] for follower in followers]

    assert seen[0] == seen[1]
    assert ends == ["done", "done"]
    assert puller.begun == ["owner/model"]


def test_a_download_goes_on_while_a_client_follows_it(
    http: httpx.Client, puller: ScriptedPuller
) -> None:
    with ExitStack() as stack:
        first, second = (Follower(stack, http, "owner/model") for _ in range(2))
        first.read_until("downloading")
        second.read_until("downloading")
        first.leave()
        puller.may_end.set()
        rest = second.read_rest()

    assert rest[-1]["status"] == "done"
    assert puller.begun == ["owner/model"]


def test_a_download_stops_when_its_last_client_leaves(
    http: httpx.Client, puller: ScriptedPuller
) -> None:
    with ExitStack() as stack:
        follower = Follower(stack, http, "owner/model")
        follower.read_until("downloading")
        follower.leave()
        wait_until(lambda: puller.ended)
    puller.may_end.set()
    again = pull(http, "owner/model", stream=False)

    assert again.json()["status"] == "done"
    assert puller.begun == ["owner/model", "owner/model"]


def test_only_some_models_are_downloaded_at_a_time(
    http: httpx.Client, puller: ScriptedPuller
) -> None:
    with ExitStack() as stack:
        followers = [Follower(stack, http, f"owner/{index}") for index in range(MAX_DOWNLOADS)]
        for follower in followers:
            follower.read_until("downloading")
        late = Follower(stack, http, "owner/late")
        waiting = late.read_until("waiting")
        num_begun = len(puller.begun)
        puller.may_end.set()
        rest = late.read_rest()

    assert waiting["files_total"] == 0
    assert num_begun == MAX_DOWNLOADS
    assert rest[-1]["status"] == "done"


@pytest.mark.parametrize(
    ("model", "status", "message"),
    [
        ("owner/large", 507, "9 GB are still to be fetched, and /disk has 1 GB free"),
        ("nobody/model", 404, "the hub has no model nobody/model"),
    ],
)
def test_a_failed_pull_ends_with_the_reason(
    http: httpx.Client, model: str, status: int, message: str
) -> None:
    streamed, whole = pull(http, model), pull(http, model, stream=False)
    [*_, last] = [line for line in streamed.iter_lines() if line]

    assert json.loads(last.removeprefix("data: "))["error"]["message"] == message
    assert "[DONE]" not in streamed.text
    assert (whole.status_code, whole.json()["error"]["message"]) == (status, message)


@pytest.mark.parametrize("body", [{}, {"model": ""}, {"model": 3}, {"model": "x" * 501}])
def test_a_wrong_name_is_refused_with_its_field(http: httpx.Client, body: dict[str, Any]) -> None:
    response = http.post(PULL, json=body, headers=ADMIN)

    assert (response.status_code, response.json()["error"]["param"]) == (400, "model")


def test_a_deleted_model_is_gone(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.present.add("owner/model")
    first, second = delete(http, "owner/model"), delete(http, "owner/model")

    assert first.json() == {
        "object": "model",
        "id": "owner/model",
        "freed_bytes": NUM_BYTES,
        "deleted": True,
    }
    assert (second.status_code, second.json()["error"]["code"]) == (404, "model_not_found")


def test_a_loaded_model_is_not_deleted(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.present.add(ALIAS)
    refused = delete(http, ALIAS)
    http.post("/v1/models/unload", json={"name": ALIAS}, headers=ADMIN)
    deleted = delete(http, ALIAS)

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "model_in_use")
    assert "POST /v1/models/unload" in refused.json()["error"]["message"]
    assert deleted.status_code == 200


def test_a_model_that_is_being_downloaded_is_not_deleted(
    http: httpx.Client, puller: ScriptedPuller
) -> None:
    puller.present.add("owner/model")
    with ExitStack() as stack:
        follower = Follower(stack, http, "owner/model")
        follower.read_until("downloading")
        response = delete(http, "owner/model")

    assert (response.status_code, "is being downloaded" in response.text) == (409, True)
    assert puller.present == {"owner/model"}


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer sk-other"}])
def test_only_the_admin_key_pulls_and_deletes(
    http: httpx.Client, puller: ScriptedPuller, headers: dict[str, str]
) -> None:
    puller.present.add("owner/model")
    pulled = http.post(PULL, json={"model": "owner/new"}, headers=headers)
    deleted = http.delete("/v1/models/owner/model", headers=headers)

    assert (pulled.status_code, deleted.status_code) == (401, 401)
    assert puller.begun == []
    assert puller.present == {"owner/model"}


def test_without_an_admin_key_nobody_pulls_and_deletes(puller: ScriptedPuller) -> None:
    with running_server(puller=puller) as server, server.client() as http:
        pulled, deleted = pull(http, "owner/new"), delete(http, "owner/model")

    assert (pulled.status_code, deleted.status_code) == (401, 401)
    assert "--admin-api-key" in pulled.text


def test_the_admin_key_is_enough_where_there_are_api_keys(puller: ScriptedPuller) -> None:
    puller.may_end.set()
    config = ServerConfig(api_key=("sk-user",), admin_api_key="sk-admin")
    user = {"authorization": "Bearer sk-user"}
    with running_server(config=config, puller=puller) as server, server.client() as http:
        pulled, deleted = pull(http, "owner/new"), delete(http, "owner/new")
        of_user = http.post(PULL, json={"model": "owner/new"}, headers=user)
        read = http.get("/v1/models/parrot", headers=ADMIN)

    assert (pulled.status_code, deleted.status_code) == (200, 200)
    assert (of_user.status_code, read.status_code) == (401, 401)


def test_a_server_without_a_disk_of_models_says_so() -> None:
    config = ServerConfig(admin_api_key="sk-admin")
    with running_server(config=config) as server, server.client() as http:
        pulled, deleted = pull(http, "owner/new", stream=False), delete(http, "owner/model")

    assert (pulled.status_code, deleted.status_code) == (400, 400)
    assert "cannot pull or delete models" in pulled.text


async def test_a_stopping_server_stops_its_downloads(puller: ScriptedPuller) -> None:
    catalogue = Catalogue([], LimitsConfig(), ServerConfig(), None)
    changes = ModelChanges(catalogue, None, puller)
    progress = changes.pull("owner/model")
    await anext(progress)
    await changes.drain(0)

    with pytest.raises(Exception, match="the server is shutting down"):
        async for _ in progress:
            pass
    assert puller.ended == ["owner/model"]
    await catalogue.shared.close()
