"""Batches through the clients of OpenAI and in Anthropic's form, on all endpoints, and by key."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import httpx
import msgspec
import openai
import pytest
from openai.types import Batch

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.batches.setup import CHATS, chat_line, create, download, jsonl, upload, wait
from tests.api.serving import RunningServer, running_server

KEYS = ("first-key", "second-key")
MESSAGES = "/v1/messages/batches"


@pytest.fixture(scope="module")
def keyed_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path: Path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    with running_server(
        limits=LimitsConfig(max_batches=3),
        config=ServerConfig(api_key=KEYS),
        store_url=f"sqlite:///{path}",
    ) as server:
        yield server


def open_http(server: RunningServer, key: str) -> httpx.Client:
    return httpx.Client(
        base_url=server.url, timeout=None, headers={"authorization": f"Bearer {key}"}
    )


@pytest.fixture
def client(keyed_server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{keyed_server.url}/v1", api_key=KEYS[0], max_retries=0) as client:
        yield client


BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello"}]},
    "/v1/completions": {"prompt": "hello", "max_tokens": 4},
    "/v1/responses": {"input": "hello"},
}


def wait_for_end(client: openai.OpenAI, batch: Batch) -> Batch:
    while batch.status in ("validating", "in_progress", "finalizing", "cancelling"):
        time.sleep(0.02)
        batch = client.batches.retrieve(batch.id)
    return batch


@pytest.mark.parametrize("endpoint", BODIES)
def test_openais_client_runs_a_batch(client: openai.OpenAI, endpoint: str) -> None:
    lines = [
        {"custom_id": f"id-{number}", "method": "POST", "url": endpoint, "body": body}
        for number, body in enumerate([{**BODIES[endpoint], "model": "parrot"}] * 3)
    ]
    file = client.files.create(file=("input.jsonl", jsonl(lines)), purpose="batch")
    made = client.batches.create(
        input_file_id=file.id,
        endpoint=endpoint,  # type: ignore[arg-type]
        completion_window="24h",
        output_expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert made.status == "validating"

    batch = wait_for_end(client, made)

    assert batch.status == "completed"
    assert batch.request_counts is not None
    assert batch.request_counts.completed == 3
    assert batch.output_file_id is not None
    output = client.files.retrieve(batch.output_file_id)
    assert (output.purpose, output.filename) == ("batch_output", f"{batch.id}_output.jsonl")
    assert output.expires_at is not None
    text = client.files.content(batch.output_file_id).text
    results = [msgspec.json.decode(line) for line in text.splitlines()]
    assert [each["custom_id"] for each in results] == ["id-0", "id-1", "id-2"]
    assert all("hell" in str(each["response"]["body"]) for each in results)
    assert batch.id in [each.id for each in client.batches.list()]


def test_a_key_neither_sees_nor_cancels_the_batch_of_another(keyed_server: RunningServer) -> None:
    with open_http(keyed_server, KEYS[0]) as own, open_http(keyed_server, KEYS[1]) as other:
        file_id = upload(own, jsonl([chat_line("a", "hello")]))
        batch = wait(own, create(own, file_id)["id"])
        batch_id = batch["id"]

        assert other.get(f"/v1/batches/{batch_id}").status_code == 404
        assert other.post(f"/v1/batches/{batch_id}/cancel").status_code == 404
        assert batch_id not in [each["id"] for each in other.get("/v1/batches").json()["data"]]
        assert other.get(f"/v1/files/{batch['output_file_id']}/content").status_code == 404
        body = {"input_file_id": file_id, "endpoint": CHATS, "completion_window": "24h"}
        answer = other.post("/v1/batches", json=body)
        assert answer.status_code == 400
        assert "does not exist" in answer.json()["error"]["message"]
        assert len(download(own, batch["output_file_id"])) == 1


def test_a_key_has_a_limit_of_unfinished_batches(keyed_server: RunningServer) -> None:
    with open_http(keyed_server, KEYS[1]) as http:
        lines = [chat_line(f"id-{number}", "x" * 300) for number in range(1500)]
        file_id = upload(http, jsonl(lines))
        batches = [create(http, file_id) for _ in range(3)]
        body = {"input_file_id": file_id, "endpoint": CHATS, "completion_window": "24h"}

        answer = http.post("/v1/batches", json=body)

        assert answer.status_code == 429
        assert "--max-batches" in answer.json()["error"]["message"]
        for batch in batches:
            http.post(f"/v1/batches/{batch['id']}/cancel")
            wait(http, batch["id"])
        assert http.post("/v1/batches", json=body).status_code == 200


def message_request(custom_id: str, text: str, **params: object) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    own = {"model": "parrot", "max_tokens": 600, "messages": messages, **params}
    return {"custom_id": custom_id, "params": own}


def wait_for_messages(http: httpx.Client, batch_id: str) -> Any:
    while (batch := http.get(f"{MESSAGES}/{batch_id}").json())["processing_status"] != "ended":
        time.sleep(0.02)
    return batch


def read_results(http: httpx.Client, batch: Any) -> list[Any]:
    """Reads the results at the URL that the batch names."""
    answer = http.get(batch["results_url"])
    assert answer.status_code == 200, answer.text
    return [msgspec.json.decode(line) for line in answer.content.splitlines()]


def test_a_batch_of_messages_runs_and_is_deleted(keyed_server: RunningServer) -> None:
    requests = [message_request(f"id-{number}", f"word {number}") for number in range(20)]
    requests.append(message_request("wrong", "hello", messages=[]))
    with open_http(keyed_server, KEYS[0]) as http:
        made = http.post(MESSAGES, json={"requests": requests}).json()
        assert (made["type"], made["processing_status"]) == ("message_batch", "in_progress")
        assert made["request_counts"]["processing"] == 21

        batch = wait_for_messages(http, made["id"])

        counts = batch["request_counts"]
        assert (counts["succeeded"], counts["errored"], counts["processing"]) == (20, 1, 0)
        results = read_results(http, batch)
        assert [each["custom_id"] for each in results] == [each["custom_id"] for each in requests]
        assert results[0]["result"]["type"] == "succeeded"
        assert "word 0" in results[0]["result"]["message"]["content"][0]["text"]
        wrong = results[-1]["result"]
        assert (wrong["type"], wrong["error"]["type"]) == ("errored", "error")
        assert wrong["error"]["error"]["type"] == "invalid_request_error"
        page = http.get(MESSAGES, params={"limit": 1}).json()
        assert [each["id"] for each in page["data"]] == [made["id"]]
        cancelled = http.post(f"{MESSAGES}/{made['id']}/cancel").json()
        assert cancelled["processing_status"] == "ended"
        deleted = http.delete(f"{MESSAGES}/{made['id']}").json()
        assert deleted == {"type": "message_batch_deleted", "id": made["id"]}
        missing = http.get(f"{MESSAGES}/{made['id']}")
        assert missing.status_code == 404
        assert missing.json()["error"]["type"] == "not_found_error"


def test_a_cancelled_batch_of_messages_keeps_its_results(keyed_server: RunningServer) -> None:
    requests = [message_request(f"id-{number}", "x" * 500) for number in range(2000)]
    with open_http(keyed_server, KEYS[0]) as http:
        batch_id = http.post(MESSAGES, json={"requests": requests}).json()["id"]
        assert http.get(f"{MESSAGES}/{batch_id}/results").status_code == 409
        assert http.delete(f"{MESSAGES}/{batch_id}").status_code == 409

        cancelling = http.post(f"{MESSAGES}/{batch_id}/cancel").json()

        assert cancelling["processing_status"] == "canceling"
        batch = wait_for_messages(http, batch_id)
        kinds = [each["result"]["type"] for each in read_results(http, batch)]
    assert len(kinds) == 2000
    assert kinds.count("canceled") == batch["request_counts"]["canceled"] > 0


@pytest.mark.parametrize(
    ("request_fields", "part"),
    [
        ([], "requests"),
        ([{"custom_id": "a b", "params": {"model": "parrot"}}], "requests[0].custom_id"),
        ([{"custom_id": "a", "params": {"model": "parrot"}}] * 2, "requests[1].custom_id"),
        ([{"custom_id": "a", "params": {"model": "nobody"}}], "nobody"),
    ],
)
def test_wrong_batches_of_messages_are_refused(
    keyed_server: RunningServer, request_fields: list[object], part: str
) -> None:
    with open_http(keyed_server, KEYS[0]) as http:
        answer = http.post("/v1/messages/batches", json={"requests": request_fields})
    assert answer.status_code in (400, 404)
    assert answer.json()["type"] == "error"
    assert part in answer.json()["error"]["message"]


def test_without_a_store_there_are_no_batches(http: httpx.Client) -> None:
    body = {"input_file_id": "file-1", "endpoint": CHATS, "completion_window": "24h"}
    assert "stores nothing" in http.post("/v1/batches", json=body).text
    assert http.get("/v1/batches").json()["data"] == []
    assert http.get("/v1/batches/batch_1").status_code == 404
