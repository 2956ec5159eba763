"""A server takes over responses in the background whose input names uploaded files.

The first server is not killed. A copy of its store is the store that a kill would have left, and
the second server opens the copy.
"""

import sqlite3
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import msgspec
import openai
import pytest
from openai.types.responses import Response, ResponseFileSearchToolCall

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from ouzel.prompts.vision.loader import load_video_processor
from ouzel.types.engine_request import EngineRequest
from tests.api.byte_tokens import byte_tokenizer
from tests.api.requests import Json
from tests.api.responses.test_tools import write_call
from tests.api.seeing import (
    FILES,
    MARKS,
    QWEN_VL,
    encode_base64,
    last_prompt,
    repeat_and_record,
    sizes_seen,
)
from tests.api.serving import RunningServer, running_server
from tests.api.vector_stores.setup import EMBEDDER, connect, fill, upload
from tests.prompts.vision.checkpoints import loaded

PICTURE = (28, 56)
TEXT = "Otters hold hands while they sleep."
CALL = write_call("file_search", {"query": "Which animals hold hands?"})
_engine_may_work = threading.Event()
ENDED = ("completed", "failed", "incomplete", "cancelled")


def create_pausable_parrot(options: dict[str, object]) -> FakeEngine:
    """Makes a seeing parrot that waits while `pause_engine` holds it."""
    return FakeEngine(msgspec.convert(options, FakeOptions), say_if_not_paused)


def say_if_not_paused(request: EngineRequest, position: int) -> int:
    _engine_may_work.wait()
    return repeat_and_record(request, position)


@contextmanager
def pause_engine() -> Iterator[None]:
    _engine_may_work.clear()
    try:
        yield
    finally:
        _engine_may_work.set()


@pytest.fixture
def start(tmp_path: Path) -> Callable[[Path], AbstractContextManager[RunningServer]]:
    """Starts a server on a store; its model sees pictures."""
    model = tmp_path / "model"
    model.mkdir()
    _engine_may_work.set()
    image_processor = loaded(model, FILES)

    def start_on(store: Path) -> AbstractContextManager[RunningServer]:
        return running_server(
            {"max_model_len": 8192, "step_s": 0.004},
            tokenizer=byte_tokenizer(*MARKS),
            engine_factory="tests.api.files.test_files_after_kills:create_pausable_parrot",
            chat_template=QWEN_VL,
            output_format=OutputFormat(calls=HERMES),
            store_url=f"sqlite:///{store}",
            image_processor=image_processor,
            video_processor=load_video_processor(model),
            further=(EMBEDDER,),
        )

    return start_on


def copy_store(store: Path, copy: Path) -> None:
    """Copies the store of a running server, as if the server were killed now."""
    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        target.execute("DELETE FROM servers")  # its lease is over
        target.commit()


def begin(client: openai.OpenAI, *parts: Json, **fields: object) -> str:
    body = {"input": [{"role": "user", "content": parts}], "background": True, **fields}
    response: Response = client.post("/responses", cast_to=Response, body=body)
    return response.id


def wait(
    client: openai.OpenAI,
    response_id: str,
    until: Callable[[Response], bool] = lambda response: response.status in ENDED,
) -> Response:
    while not until(response := client.responses.retrieve(response_id)):
        assert response.status not in ENDED, response
        time.sleep(0.005)
    return response


def test_a_queued_response_reads_its_files_on_another_server(
    start: Callable[[Path], AbstractContextManager[RunningServer]], tmp_path: Path
) -> None:
    store, copy = tmp_path / "store.sqlite3", tmp_path / "copy.sqlite3"
    with start(store) as server, connect(server) as client:
        picture = upload(client, "a.png", b64decode(encode_base64(*PICTURE)))
        notes = upload(client, "notes.md", TEXT)
        with pause_engine():
            queued_id = begin(
                client,
                {"type": "input_image", "file_id": picture, "detail": "auto"},
                {"type": "input_file", "file_id": notes},
            )
            assert client.responses.retrieve(queued_id).status == "queued"
            copy_store(store, copy)

    with start(copy) as server, connect(server) as client:
        response = wait(client, queued_id)
        assert response.status == "completed", response.error
        assert sizes_seen() == [PICTURE]
        assert f"notes.md\n{TEXT}" in last_prompt()
        assert TEXT in response.output_text


def test_a_response_in_its_middle_goes_on_with_its_files(
    start: Callable[[Path], AbstractContextManager[RunningServer]], tmp_path: Path
) -> None:
    store, copy = tmp_path / "store.sqlite3", tmp_path / "copy.sqlite3"
    with start(store) as server, connect(server) as client:
        picture = upload(client, "a.png", b64decode(encode_base64(*PICTURE)))
        notes = upload(client, "notes.md", "Seals eat herring.")
        animals = fill(client, {"otters.md": TEXT})
        response_id = begin(
            client,
            {"type": "input_image", "file_id": picture, "detail": "auto"},
            {"type": "input_file", "file_id": notes},
            {"type": "input_text", "text": CALL},
            tools=[{"type": "file_search", "vector_store_ids": [animals]}],
        )
        wait(client, response_id, has_searched)
        copy_store(store, copy)

    with start(copy) as server, connect(server) as client:
        response = wait(client, response_id)
        assert response.status == "completed", response.error
        [search] = [item for item in response.output if item.type == "file_search_call"]
        assert isinstance(search, ResponseFileSearchToolCall)
        assert search.status == "completed"
        prompt = last_prompt()
        assert "notes.md\nSeals eat herring." in prompt
        assert TEXT in prompt  # the result of the search
        assert sizes_seen() == [PICTURE]
        assert response.usage is not None
        assert response.usage.output_tokens > len(CALL)  # a token is a byte


def has_searched(response: Response) -> bool:
    return any(
        item.type == "file_search_call" and item.status == "completed" for item in response.output
    )


def test_a_response_whose_file_was_deleted_fails(
    start: Callable[[Path], AbstractContextManager[RunningServer]], tmp_path: Path
) -> None:
    store, copy = tmp_path / "store.sqlite3", tmp_path / "copy.sqlite3"
    with start(store) as server, connect(server) as client:
        notes = upload(client, "notes.md", TEXT)
        with pause_engine():
            queued_id = begin(client, {"type": "input_file", "file_id": notes})
            client.files.delete(notes)
            copy_store(store, copy)

    with start(copy) as server, connect(server) as client:
        response = wait(client, queued_id)
        assert response.status == "failed"
        assert response.error is not None
        assert notes in response.error.message
