"""Each of hundreds of requests with one wrong field gets a 4xx that names the field."""

import re
from collections.abc import Iterator
from dataclasses import replace
from hashlib import md5

import httpx
import pytest

from ouzel.api.operations import DOCUMENTED
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.hosted_tools.code_interpreter.containers import Containers
from tests.api.batches.setup import upload
from tests.api.malformed import Malformed, malformed_requests
from tests.api.requests import Json, chat, read_error
from tests.api.serving import running_server
from tests.api.speaking.humming import humming_server
from tests.api.vector_stores.setup import search_server
from tests.hosted_tools.code_interpreter.sandboxes import LIMITS, make_plan, skip_without_sandbox

CHAT = "/v1/chat/completions/{completion_id}"
BATCHES = "/v1/batches"
UPLOADS = "/v1/uploads"
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
    UPLOADS: {"bytes": 3, "filename": "a", "mime_type": "text/plain", "purpose": "user_data"},
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

SPEECH = "/v1/audio/speech"
SPOKEN: Json = {"input": "a.", "voice": "af_bella", "response_format": "wav", "speed": 2}

CONTAINERS = "/v1/containers"
CONTAINER: Json = {
    "name": "a",
    "memory_limit": "1g",
    "expires_after": {"anchor": "last_active_at", "minutes": 5},
}

STORES = "/v1/vector_stores"
STORE = f"{STORES}/{{vector_store_id}}"
AUTO: Json = {"type": "auto"}
OF_STORES: dict[str, Json] = {  # file_id: the test uploads a file
    STORES: {"name": "a", "chunking_strategy": AUTO},
    STORE: {"name": "b", "metadata": {"a": "b"}},
    f"{STORE}/search": {"query": "a", "max_num_results": 2},
    f"{STORE}/files": {"file_id": "", "attributes": {"a": 1}},
    f"{STORE}/files/{{file_id}}": {"attributes": {"a": True}},
    f"{STORE}/file_batches": {"file_ids": [], "chunking_strategy": AUTO},
}
COMPLETION = f"{UPLOADS}/{{upload_id}}/complete"  # completes an upload


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
    others = {CONTAINERS, COMPLETION, SPEECH}
    assert GOOD.keys() | OF_VECTORS.keys() | OF_STORES.keys() | others == {
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


def test_each_malformed_request_for_speech_is_answered_likewise() -> None:
    requests = list(malformed_requests(SPEECH, SPOKEN))
    assert len(requests) > 70
    with humming_server() as humming, humming.server.client() as http:
        assert http.post(SPEECH, json=SPOKEN).status_code == 200
        complaints = [
            complaint(request, http.post(SPEECH, json=request.body)) for request in requests
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


def test_each_malformed_completion_of_an_upload_is_answered_likewise(
    keeping: httpx.Client,
) -> None:
    upload_id = keeping.post(UPLOADS, json=GOOD[UPLOADS]).json()["id"]
    parts = f"{UPLOADS}/{upload_id}/parts"
    part = keeping.post(parts, files={"data": ("a", b"abc")}).json()["id"]
    good: Json = {"part_ids": [part], "md5": md5(b"abc").hexdigest()}
    requests = list(malformed_requests(COMPLETION, good))
    assert len(requests) > 30
    url = COMPLETION.format(upload_id=upload_id)
    complaints = [complaint(request, keeping.post(url, json=request.body)) for request in requests]
    assert not any(complaints), "\n".join(filter(None, complaints))
    assert keeping.post(url, json=good).json()["status"] == "completed"


@pytest.fixture(scope="module")
def searching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    file = tmp_path_factory.mktemp("store") / "store.sqlite3"
    with search_server(file) as server, server.client() as client:
        yield client


@pytest.mark.parametrize("path", OF_STORES)
def test_each_malformed_request_about_vector_stores_is_answered_likewise(
    searching: httpx.Client, path: str
) -> None:
    file_id = upload(searching, b"text")
    store_id = searching.post(STORES, json={}).json()["id"]
    good = {**OF_STORES[path]}
    if "file_id" in good:
        good["file_id"] = file_id
    if "file_ids" in good:
        good["file_ids"] = [file_id]
    searching.post(f"{STORES}/{store_id}/files", json={"file_id": file_id})
    url = path.format(vector_store_id=store_id, file_id=file_id)
    assert searching.post(url, json=good).status_code == 200
    requests = list(malformed_requests(path, good))
    assert len(requests) > 30
    complaints = [
        complaint(request, searching.post(url, json=request.body)) for request in requests
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
