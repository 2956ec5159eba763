"""Each of hundreds of requests with one wrong field gets a 4xx that names the field."""

import re
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from ouzel.api.operations import DOCUMENTED
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.hosted_tools.code_interpreter.containers import Containers
from tests.api.batches.setup import upload
from tests.api.malformed import Malformed, malformed_requests
from tests.api.requests import Json, chat, read_error
from tests.api.serving import running_server
from tests.hosted_tools.code_interpreter.sandboxes import LIMITS, make_plan, skip_without_sandbox

CHAT = "/v1/chat/completions/{completion_id}"
BATCHES = "/v1/batches"
CONVERSATION = "/v1/conversations/{conversation_id}"
GOOD: dict[str, Json] = {
    "/v1/chat/completions": chat("Hi", stream=False, max_tokens=2),
    CHAT: {"metadata": {"a": "b"}},
    "/v1/completions": {"model": "parrot", "prompt": "abc", "max_tokens": 2, "stream": False},
    "/v1/responses": {"model": "parrot", "input": "Hi", "stream": False},
    "/v1/responses/input_tokens": {"input": "Hi"},
    "/v1/responses/compact": {"model": "parrot", "input": "Hi"},
    "/v1/conversations": {"items": [{"role": "user", "content": "Hi"}], "metadata": {"a": "b"}},
    CONVERSATION: {"metadata": {"a": "b"}},
    f"{CONVERSATION}/items": {"items": [{"role": "user", "content": "Hi"}]},
    BATCHES: {"endpoint": "/v1/completions", "completion_window": "24h"},  # and a file
    "/v1/tokenize": {"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]},
    "/v1/detokenize": {"model": "parrot", "tokens": [72, 105]},
}

OF_VECTORS: dict[str, Json] = {  # right bodies for a model that makes embeddings
    "/v1/embeddings": {"model": "parrot", "input": ["abc", "d"]},
    "/v1/pooling": {"model": "parrot", "input": ["abc", "d"], "task": "embed"},
    "/v1/rerank": {"model": "parrot", "query": "abc", "documents": ["d", {"text": "e"}]},
    "/v1/score": {"model": "parrot", "text_1": "abc", "text_2": ["d"]},
}

CONTAINERS = "/v1/containers"
CONTAINER: Json = {
    "name": "a",
    "memory_limit": "1g",
    "expires_after": {"anchor": "last_active_at", "minutes": 5},
}


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running_server(
            store_url=f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3"
        ) as server,
        server.client() as client,
    ):
        yield client


def test_every_operation_with_a_body_is_tried() -> None:
    tried = [
        operation.path
        for operation in DOCUMENTED
        if operation.bodies and operation.words == "openai" and operation.changing is None
    ]
    # an excluded path has the same body as another path
    assert GOOD.keys() | OF_VECTORS.keys() | {CONTAINERS} == {
        path for path in tried if not path.endswith("/render")
    }


@pytest.mark.parametrize("path", GOOD)
def test_each_malformed_request_is_answered_with_the_name_of_its_field(
    keeping: httpx.Client, path: str
) -> None:
    good = GOOD[path]
    if path == BATCHES:
        good = good | {"input_file_id": upload(keeping, b"{}")}
    requests = list(malformed_requests(path, good))
    assert len(requests) > (300 if "stream" in good else 70)
    url = path.format(
        conversation_id=keeping.post("/v1/conversations", json={}).json()["id"],
        completion_id=_store_chat(keeping),
    )
    complaints = []
    for position, request in enumerate(requests):
        complaints.append(complaint(request, keeping.post(url, json=request.body)))
        if position % 30 == 0:
            assert keeping.post(url, json=good).status_code == 200
    assert not any(complaints), "\n".join(filter(None, complaints))


def _store_chat(keeping: httpx.Client) -> str:
    body = chat("Hi", store=True)
    completion_id: str = keeping.post("/v1/chat/completions", json=body).json()["id"]
    return completion_id


@pytest.mark.parametrize("path", OF_VECTORS)
def test_each_malformed_request_for_vectors_is_answered_likewise(path: str) -> None:
    requests = list(malformed_requests(path, OF_VECTORS[path]))
    assert len(requests) > 70
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            sentences=SentenceFiles(modes=("mean",)),
        ) as server,
        server.client() as http,
    ):
        assert http.post(path, json=OF_VECTORS[path]).status_code == 200
        complaints = [
            complaint(request, http.post(path, json=request.body)) for request in requests
        ]
    assert not any(complaints), "\n".join(filter(None, complaints))


def test_each_malformed_request_for_a_container_is_answered_likewise() -> None:
    skip_without_sandbox()
    requests = list(malformed_requests(CONTAINERS, CONTAINER))
    assert len(requests) > 70
    plan = make_plan(replace(LIMITS, memory_bytes=2**30))
    containers = Containers(plan, max_containers=4, idle_s=3600.0)
    with running_server(containers=containers) as server, server.client() as http:
        assert http.post(CONTAINERS, json=CONTAINER).status_code == 200
        complaints = [
            complaint(request, http.post(CONTAINERS, json=request.body)) for request in requests
        ]
    assert not any(complaints), "\n".join(filter(None, complaints))


def complaint(request: Malformed, response: httpx.Response) -> str:
    """Returns a description of a wrong answer, or an empty text if the answer is right."""
    said = (
        f"{request.path} {request.field} ({request.what}): "
        f"{response.status_code} {response.text[:300]}"
    )
    if not 400 <= response.status_code < 500:
        return said
    error = read_error(response)
    is_named = (
        re.fullmatch(rf"{request.field}([.\[].*)?", error["param"] or "", re.DOTALL) is not None
    )
    has_value = request.what == "missing" or "given" in error["message"]
    return "" if is_named and request.field in error["message"] and has_value else said
