"""Models are loaded and unloaded while the server runs."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import EngineUnavailable
from ouzel.generation import ServedModel
from tests.api.requests import chat
from tests.api.server_setup import MODEL, ServerSetup
from tests.api.serving import RunningServer, running_server

ADMIN = {"authorization": "Bearer sk-admin"}
OTHER = "org/other"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    further = (ServerSetup(names=(OTHER,)),)
    config = ServerConfig(admin_api_key="sk-admin")
    with running_server(further=further, config=config) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def build_request(model: str | None, **fields: object) -> dict[str, Any]:
    return {**chat("Polly", **fields), "model": model}


def load(http: httpx.Client, name: str, model: str = "parrot", **given: Any) -> httpx.Response:
    return http.post(
        "/v1/models/load", json={"name": name, "model": model}, **{"headers": ADMIN, **given}
    )


def unload(http: httpx.Client, name: str) -> httpx.Response:
    return http.post("/v1/models/unload", json={"name": name}, headers=ADMIN)


def test_a_model_is_loaded_asked_and_unloaded(http: httpx.Client) -> None:
    loaded = load(http, "new")
    answer = http.post("/v1/chat/completions", json=build_request("new"))
    unloaded = unload(http, "new")
    after = http.post("/v1/chat/completions", json=build_request("new"))

    assert (loaded.status_code, loaded.json()["id"]) == (200, "new")
    assert answer.json()["model"] == "new"
    assert unloaded.json() == {"object": "model", "id": "new", "unloaded": True}
    assert after.status_code == 404
    assert "new" not in [model["id"] for model in http.get("/v1/models").json()["data"]]


def test_unloading_waits_for_running_requests(http: httpx.Client) -> None:
    load(http, "busy")
    with http.stream(
        "POST", "/v1/chat/completions", json=build_request("busy", stream=True, max_tokens=100)
    ) as stream:
        lines = stream.iter_lines()
        next(lines)
        unloading = threading.Thread(target=unload, args=(http, "busy"))
        unloading.start()
        rest = list(lines)
    unloading.join()

    assert rest[-2] == "data: [DONE]"
    assert '"finish_reason":"stop"' in "".join(rest)


def test_a_name_is_taken_once(http: httpx.Client) -> None:
    response = load(http, OTHER)

    assert (response.status_code, response.json()["error"]["param"]) == (400, "name")


def test_a_broken_model_changes_nothing(http: httpx.Client) -> None:
    before = http.get("/v1/models").json()
    response = load(http, "broken", model="/nowhere")

    assert (response.status_code, response.json()["error"]["message"]) == (
        400,
        "there is no directory /nowhere",
    )
    assert http.get("/v1/models").json() == before


def test_an_unknown_model_cannot_be_unloaded(http: httpx.Client) -> None:
    assert unload(http, "nope").status_code == 404
    assert http.post("/v1/models/unload", json={"name": 1}, headers=ADMIN).status_code == 400


def test_a_model_without_places_for_adapters_says_so(http: httpx.Client) -> None:
    body = {"lora_name": "one", "lora_path": "/somewhere", "model": OTHER}
    refused = http.post("/v1/load_lora_adapter", json=body, headers=ADMIN)

    assert (refused.status_code, f"{OTHER} takes no adapters" in refused.text) == (400, True)


@pytest.mark.parametrize("name", [OTHER, "nope"])
def test_only_adapters_are_unloaded_as_such(http: httpx.Client, name: str) -> None:
    assert (
        http.post("/v1/unload_lora_adapter", json={"lora_name": name}, headers=ADMIN).status_code
        == 404
    )


def test_only_the_admin_key_changes_models(http: httpx.Client) -> None:
    assert load(http, "x", headers={}).status_code == 401
    assert load(http, "x", headers={"authorization": "Bearer sk-other"}).status_code == 401


def test_without_an_admin_key_nobody_changes_models() -> None:
    with running_server() as server, server.client() as http:
        response = load(http, "x")

    assert (response.status_code, "--admin-api-key" in response.text) == (401, True)


def test_the_admin_key_is_enough_where_there_are_api_keys() -> None:
    config = ServerConfig(api_key=("sk-user",), admin_api_key="sk-admin")
    with running_server(config=config) as server, server.client() as http:
        assert load(http, "new").status_code == 200
        assert load(http, "x", headers={"authorization": "Bearer sk-user"}).status_code == 401
        assert http.get("/v1/models", headers=ADMIN).status_code == 401


def test_a_server_may_be_without_models_for_a_while() -> None:
    with (
        running_server(config=ServerConfig(admin_api_key="sk-admin")) as server,
        server.client() as http,
    ):
        unload(http, MODEL)
        health = http.get("/health")
        models = http.get("/v1/models")
        answer = http.post("/v1/completions", json={})
        index, page = http.get("/"), http.get("/about")
        load(http, "new")
        after = http.post("/v1/chat/completions", json=build_request(None))

    assert (health.status_code, models.json()["data"], answer.status_code) == (503, [], 404)
    assert (index.json()["models"], page.status_code) == ([], 200)
    assert after.json()["model"] == "new"


class EndlessLoader:
    """Implements `ModelLoader` for a model that is never ready."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        self.has_begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def unload(self, model: ServedModel) -> None: ...


async def test_a_load_ends_when_the_server_does() -> None:
    loader = EndlessLoader()
    catalogue = Catalogue([], LimitsConfig(), ServerConfig(), None)
    changes = ModelChanges(catalogue, loader)
    loading = asyncio.create_task(changes.load({"name": "a"}))
    await loader.has_begun.wait()
    await changes.drain(60)

    with pytest.raises(EngineUnavailable, match="the server is shutting down"):
        await loading
    with pytest.raises(EngineUnavailable, match="the server is shutting down"):
        await changes.load({"name": "b"})
    await catalogue.shared.close()


@contextmanager
def loading(server: RunningServer, name: str) -> Iterator[None]:
    """Makes the server load a model that is never ready, while the `with` block runs."""
    body = f'{{"name": "{name}", "model": "endless"}}'
    head = (
        "POST /v1/models/load HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {ADMIN['authorization']}\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        while server.catalogue.only is not None:
            time.sleep(0.001)
        yield


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {}),
        ("/v1/responses", {"input": "Polly"}),
        ("/api/chat", {"stream": False}),
        ("/invocations", {}),
    ],
)
def test_a_model_that_is_being_loaded_asks_to_try_again(path: str, fields: dict[str, Any]) -> None:
    with (
        running_server(config=ServerConfig(admin_api_key="sk-admin")) as server,
        server.client() as http,
    ):
        server.catalogue.arrange(["slow", MODEL])
        with loading(server, "slow"):
            of_first = http.post("/v1/chat/completions", json=build_request(None))
            refused = http.post(path, json=build_request("slow", **fields))
            taken = http.post("/v1/chat/completions", json=build_request(MODEL))
        while server.catalogue.only is None:
            time.sleep(0.001)
        unknown = http.post("/v1/chat/completions", json=build_request("slow"))

    assert (
        refused.status_code,
        "being loaded" in refused.text,
        "retry-after" in refused.headers,
    ) == (503, True, True)
    assert (of_first.status_code, taken.status_code, unknown.status_code) == (503, 200, 404)


def test_a_model_that_goes_and_comes_again_keeps_its_place() -> None:
    further = (ServerSetup(names=("b",)), ServerSetup(names=("c",)))
    with running_server(further=further, config=ServerConfig(admin_api_key="sk-admin")) as server:
        server.catalogue.arrange([MODEL, "b", "new"])
        with server.client() as http:
            for name in ("b", MODEL):
                unload(http, name)
                load(http, name)
            load(http, "new")
            models = [model["id"] for model in http.get("/v1/models").json()["data"]]

    assert models == [MODEL, "b", "new", "c"]
