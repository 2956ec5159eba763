"""Input files and batches for the tests, and waits for their ends."""

import time
from collections.abc import Callable, Iterable
from typing import Any  # JSON

import httpx
import msgspec

CHATS = "/v1/chat/completions"
ENDED = {"failed", "completed", "expired", "cancelled"}


def chat_line(
    custom_id: str, text: str, *, model: str = "parrot", **fields: object
) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": CHATS, "body": body}


def jsonl(lines: Iterable[object]) -> bytes:
    return b"\n".join(msgspec.json.encode(line) for line in lines)


def upload(http: httpx.Client, content: bytes, *, purpose: str = "batch") -> str:
    """Uploads a file and returns its id."""
    answer = http.post(
        "/v1/files", data={"purpose": purpose}, files={"file": ("input.jsonl", content)}
    )
    assert answer.status_code == 200, answer.text
    file_id: str = answer.json()["id"]
    return file_id


def download(http: httpx.Client, file_id: str) -> list[Any]:
    """Returns the lines of a file."""
    answer = http.get(f"/v1/files/{file_id}/content")
    assert answer.status_code == 200, answer.text
    return [msgspec.json.decode(line) for line in answer.content.splitlines()]


def create(http: httpx.Client, file_id: str, *, endpoint: str = CHATS, **fields: object) -> Any:
    body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h", **fields}
    answer = http.post("/v1/batches", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait(
    http: httpx.Client,
    batch_id: str,
    until: Callable[[Any], bool] = lambda batch: batch["status"] in ENDED,
) -> Any:
    """Waits until the batch has ended, or until another condition is true."""
    while not until(batch := http.get(f"/v1/batches/{batch_id}").json()):
        assert batch["status"] not in ENDED, batch
        time.sleep(0.02)
    return batch


def run_batch(http: httpx.Client, lines: Iterable[object], **fields: Any) -> Any:
    """Uploads the lines and runs them as a batch to its end."""
    batch = create(http, upload(http, jsonl(lines)), **fields)
    return wait(http, batch["id"])
