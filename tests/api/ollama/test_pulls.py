"""Models are downloaded and deleted with Ollama's paths."""

import json
from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.ollama.lines import read_error
from tests.api.pulling import ScriptedPuller
from tests.api.server_setup import ALIAS
from tests.api.serving import running_server

ADMIN = {"authorization": "Bearer sk-admin"}


@pytest.fixture
def puller() -> ScriptedPuller:
    puller = ScriptedPuller()
    puller.may_end.set()
    return puller


@pytest.fixture
def http(puller: ScriptedPuller) -> Iterator[httpx.Client]:
    config = ServerConfig(admin_api_key="sk-admin")
    with running_server(config=config, puller=puller) as server, server.client() as http:
        yield http


def pull(http: httpx.Client, model: str, **fields: object) -> httpx.Response:
    return http.post("/api/pull", json={"model": model, **fields}, headers=ADMIN)


def delete(http: httpx.Client, model: str) -> httpx.Response:
    return http.request("DELETE", "/api/delete", json={"model": model}, headers=ADMIN)


def test_a_pull_has_ollamas_lines(http: httpx.Client) -> None:
    response = pull(http, "owner/model")
    lines = [json.loads(line) for line in response.iter_lines()]

    assert response.headers["content-type"] == "application/x-ndjson"
    assert lines[0] == {"status": "pulling manifest"}
    assert lines[-4:] == [
        {"status": "pulling abc", "digest": "sha256:abc", "total": 100, "completed": 100},
        {"status": "verifying sha256 digest"},
        {"status": "writing manifest"},
        {"status": "success"},
    ]


def test_a_pull_without_a_stream_is_one_object(http: httpx.Client) -> None:
    response = pull(http, "owner/model", stream=False)

    assert response.json() == {"status": "success"}


@pytest.mark.parametrize("name", ["hf.co/owner/model", "https://huggingface.co/owner/model:latest"])
def test_the_hubs_address_and_the_default_tag_mean_nothing(
    http: httpx.Client, puller: ScriptedPuller, name: str
) -> None:
    pull(http, name)

    assert puller.begun == ["owner/model"]


def test_a_failed_pull_ends_with_an_error_line(http: httpx.Client) -> None:
    streamed, whole = pull(http, "owner/large"), pull(http, "owner/large", stream=False)
    lines = [json.loads(line) for line in streamed.iter_lines()]

    assert lines[-1] == {"error": "9 GB are still to be fetched, and /disk has 1 GB free"}
    assert read_error(whole, 507) == lines[-1]["error"]


@pytest.mark.parametrize("name", [ALIAS, f"{ALIAS}:latest", "owner/model", ""])
def test_a_model_that_is_here_is_a_success_for_everybody(
    http: httpx.Client, puller: ScriptedPuller, name: str
) -> None:
    puller.present.add("owner/model")
    response = http.post("/api/pull", json={"model": name})

    assert response.json() == {"status": "success"}
    assert puller.begun == []


def test_only_the_admin_key_downloads(http: httpx.Client, puller: ScriptedPuller) -> None:
    response = http.post("/api/pull", json={"model": "owner/new"})

    assert "the admin key is needed" in read_error(response, 401)
    assert puller.begun == []


def test_a_user_of_a_server_with_keys_pulls_what_is_here(puller: ScriptedPuller) -> None:
    config = ServerConfig(api_key=("sk-user",), admin_api_key="sk-admin")
    with running_server(config=config, puller=puller) as server, server.client() as http:
        user = {"authorization": "Bearer sk-user"}
        served = http.post("/api/pull", json={"model": ALIAS}, headers=user)
        new = http.post("/api/pull", json={"model": "owner/new"}, headers=user)
        nobody = http.post("/api/pull", json={"model": ALIAS})
        of_admin = pull(http, "owner/new", stream=False)

    assert (served.json(), of_admin.json()) == ({"status": "success"}, {"status": "success"})
    assert (new.status_code, nobody.status_code) == (401, 401)


def test_a_deletion_has_an_empty_answer(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.present.add("owner/model")
    first, second = delete(http, "owner/model:latest"), delete(http, "owner/model")

    assert (first.status_code, first.content) == (200, b"")
    assert "not on this disk" in read_error(second, 404)


def test_a_loaded_model_is_not_deleted(http: httpx.Client) -> None:
    message = read_error(delete(http, f"{ALIAS}:latest"), 409)

    assert message == f"the model '{ALIAS}' is loaded; unload it first: POST /v1/models/unload"


def test_a_deletion_without_a_name_is_refused(http: httpx.Client) -> None:
    assert "model must be the name of a model" in read_error(delete(http, ""), 400)


def test_only_the_admin_key_deletes(http: httpx.Client, puller: ScriptedPuller) -> None:
    puller.present.add("owner/model")
    response = http.request("DELETE", "/api/delete", json={"model": "owner/model"})

    assert response.status_code == 401
    assert puller.present == {"owner/model"}
