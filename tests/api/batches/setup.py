"""Input files and batches for the tests, and waits for their ends."""

import time
from collections.abc import Callable, Iterable
from typing import Any  # JSON

import httpx
import msgspec

from ouzel.store.files.records import NewFile
from tests.api.serving import RunningServer

CHATS = "/v1/chat/completions"
ENDED = {"failed", "completed", "expired", "cancelled"}


def chat_line(custom_id: str, text: str, **fields: object) -> dict[str, Any]:
    body = {"model": "parrot", "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": CHATS, "body": body}


def jsonl(lines: Iterable[object]) -> bytes:
    return b"\n".join(msgspec.json.encode(line) for line in lines)


_numbers = iter(range(10**9))


def upload(
    server: RunningServer, content: bytes, *, purpose: str = "batch", key_id: str | None = None
) -> str:
    """Stores a file and returns its id."""
    store = server.catalogue.shared.store
    assert store is not None
    files = store.files
    file_id = f"file-{next(_numbers)}"

    async def write() -> None:
        new = NewFile(id=file_id, key_id=key_id, filename="input.jsonl", purpose=purpose)
        await files.begin(new)
        await files.add_piece(file_id, 0, content)
        await files.finish(file_id)

    server.run(write())
    return file_id


def download(server: RunningServer, file_id: str, *, key_id: str | None = None) -> list[Any]:
    """Returns the lines of a file."""
    store = server.catalogue.shared.store
    assert store is not None
    files = store.files
    pieces: list[bytes] = []

    async def read() -> None:
        pieces.extend([piece async for piece in files.read(file_id, key_id)])

    server.run(read())
    return [msgspec.json.decode(line) for line in b"".join(pieces).splitlines()]


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


def run_batch(
    server: RunningServer, http: httpx.Client, lines: Iterable[object], **fields: Any
) -> Any:
    """Uploads the lines and runs them as a batch to its end."""
    batch = create(http, upload(server, jsonl(lines)), **fields)
    return wait(http, batch["id"])
