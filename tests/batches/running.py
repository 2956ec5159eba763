"""Runs servers with three small batches, without HTTP and without a model.

Each line has a number, from which its answer follows: every third line is refused.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any  # JSON

import msgspec
from sqlalchemy import Connection, update

from ouzel.api.batches.result_files import StoredBatchFiles
from ouzel.batches.line_app import LineAnswer
from ouzel.batches.worker import BatchWorker
from ouzel.store.base import Store
from ouzel.store.batches.records import (
    BatchStatus,
    Dialect,
    LineEnd,
    LineUsage,
    NewBatch,
    NewLine,
    StoredBatch,
)
from ouzel.store.batches.tables import batches
from ouzel.store.files.records import NewFile
from ouzel.store.records import PageRequest
from tests.store.watched import Moment, WatchedStore, open_watched

KEY = "key-1"
MODEL = "model"
NUM_PLACES = 3


@dataclass(frozen=True)
class Plan:
    """A batch of the tests."""

    id: str
    endpoint: str
    num_lines: int
    dialect: Dialect = "openai"

    @property
    def custom_ids(self) -> list[str]:
        return [f"{self.id}-{number}" for number in range(self.num_lines)]


PLANS = (
    Plan("batch_chats", "/v1/chat/completions", 4),
    Plan("batch_vectors", "/v1/embeddings", 1),
    Plan("batch_messages", "/v1/messages", 2, "anthropic"),
)


def is_refused(custom_id: str) -> bool:
    return int(custom_id.rpartition("-")[2]) % 3 == 1


def find_usage(custom_id: str) -> LineUsage:
    number = int(custom_id.rpartition("-")[2])
    return LineUsage(input_tokens=number + 1, output_tokens=10 * number + 3)


async def add_batches(store: Store) -> None:
    """Adds all batches; their files are not validated yet."""
    for plan in PLANS:
        bodies = {
            name: msgspec.json.encode({"model": MODEL, "name": name}) for name in plan.custom_ids
        }
        new = NewBatch(
            id=plan.id,
            key_id=KEY,
            dialect=plan.dialect,
            endpoint=plan.endpoint,
            input_file_id=f"file-{plan.id}",
            window_s=86400,
            metadata=None,
            output_expires_after_s=None,
        )
        if plan.dialect == "anthropic":
            lines = [NewLine(custom_id, body) for custom_id, body in bodies.items()]
            await store.batches.add(new, lines, model=MODEL)
            continue
        texts = [
            {"custom_id": name, "method": "POST", "url": plan.endpoint, "body": msgspec.Raw(body)}
            for name, body in bodies.items()
        ]
        content = b"\n".join(map(msgspec.json.encode, texts))
        await store.files.begin(NewFile(id=f"file-{plan.id}", key_id=KEY, filename="in.jsonl"))
        await store.files.add_piece(f"file-{plan.id}", 0, content[:100])
        await store.files.add_piece(f"file-{plan.id}", 1, content[100:])
        await store.files.finish(f"file-{plan.id}", "batch")
        await store.batches.add(new)


@dataclass
class App:
    """Answers lines, out of their order, as long as its server is not frozen."""

    watched: WatchedStore
    at_answer: Callable[[int], None] = lambda number: None
    begun: list[str] = field(default_factory=list)  # custom_ids
    num_answers: int = 0

    async def ask(self, path: str, body: bytes, *, key_id: str | None) -> LineAnswer:
        assert key_id == KEY
        await self.watched.database.go_on()
        name = msgspec.json.decode(body)["name"]
        self.begun.append(name)
        for _ in range(7 * len(self.begun) % 4):
            await asyncio.sleep(0)
        self.num_answers += 1
        self.at_answer(self.num_answers)
        await self.watched.database.go_on()
        if is_refused(name):
            return LineAnswer(status=400, request_id="req", body=b'{"error":{}}')
        usage = find_usage(name)
        answer = {
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
            }
        }
        return LineAnswer(status=200, request_id="req", body=msgspec.json.encode(answer))

    def find_model(self, name: str, endpoint: str) -> str:
        return name

    def num_places(self, model: str) -> int:
        return NUM_PLACES


class BatchServer:
    """One server; its worker runs from `start` on."""

    def __init__(self, url: str) -> None:
        self.watched = open_watched(url)
        self.store = self.watched.store
        self.database = self.watched.database
        self.app = App(self.watched)
        self.worker = BatchWorker(
            self.app,
            StoredBatchFiles(self.store),
            self.store,
            look_every_s=0.05,
            retry_after_s=0.0,
        )
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self.worker.watch())

    def run_until(self, moment: Moment) -> asyncio.Event:
        """Starts the server, which freezes at a moment. The event is set then."""
        is_frozen = asyncio.Event()

        async def freeze(now: Moment) -> None:
            if now == moment:
                self.database.freeze()
                is_frozen.set()

        self.database.at_moment = freeze
        self.start()
        return is_frozen

    def run_until_answer(self, number: int) -> asyncio.Event:
        """Starts the server, which freezes before it sees its n-th answer to a line."""
        is_frozen = asyncio.Event()

        def freeze(num_answers: int) -> None:
            if num_answers == number:
                self.database.freeze()
                is_frozen.set()

        self.app.at_answer = freeze
        self.start()
        return is_frozen

    async def kill(self) -> None:
        """Ends all tasks of the server; the store sees no clean-up."""
        if not self.database.is_frozen:
            self.database.freeze()
        await self.database.bury()
        await self._stop_watching()

    async def stop(self) -> None:
        await self.worker.drain()
        await self._stop_watching()
        await self.store.close()

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


@asynccontextmanager
async def observing(url: str) -> AsyncIterator[WatchedStore]:
    """Opens the store a further time; this server runs nothing."""
    watched = open_watched(url)
    try:
        yield watched
    finally:
        await watched.store.close()


async def read_batch(store: Store, plan: Plan) -> StoredBatch:
    batch = await store.batches.get(plan.id, KEY, plan.dialect)
    assert batch is not None
    return batch


async def wait_for_the_ends(observer: WatchedStore) -> None:
    while await observer.store.batches.unfinished():
        await asyncio.sleep(0.005)


async def expire(observer: WatchedStore) -> None:
    """Ends the time of all batches."""

    def end_time(connection: Connection) -> None:
        connection.execute(update(batches).values(expires_at=0.0))

    await observer.database.write(end_time)


async def cancel(observer: WatchedStore) -> None:
    for plan in PLANS:
        await observer.store.batches.cancel(plan.id, KEY, plan.dialect)


async def read_stored_results(store: Store) -> dict[str, bytes]:
    """Returns the results of all lines that are stored now, by custom_id, as clients see them."""
    found: dict[str, bytes] = {}
    for plan in PLANS:
        batch = await read_batch(store, plan)
        if batch.status.is_final and plan.dialect == "openai":
            for file_id in (batch.output_file_id, batch.error_file_id):
                for line in await _read_lines(store, file_id):
                    found[msgspec.json.decode(line)["custom_id"]] = line
            continue
        for result in await store.batches.results(plan.id, after=-1, limit=100):
            if result.result is not None:
                found[result.custom_id] = result.result
    return found


async def _read_lines(store: Store, file_id: str | None) -> list[bytes]:
    if file_id is None:
        return []
    return b"".join([piece async for piece in store.files.read(file_id, KEY)]).splitlines()


_STATUS_ENDS = {
    BatchStatus.CANCELLED: LineEnd.CANCELLED,
    BatchStatus.EXPIRED: LineEnd.EXPIRED,
}


async def check(store: Store, statuses: set[BatchStatus]) -> None:
    """Asserts that each line of each batch has one result, in order, and that all counts agree."""
    file_ids: set[str | None] = set()
    for plan in PLANS:
        batch = await read_batch(store, plan)
        assert batch.status in statuses, batch
        ends = await (
            _read_message_ends(store, plan)
            if plan.dialect == "anthropic"
            else _read_ends(store, batch)
        )
        if batch.num_lines == 0:  # it ended before its file was read
            assert not ends
            assert batch.status in _STATUS_ENDS
            continue
        assert sorted(ends) == plan.custom_ids
        counts = Counter(ends.values())
        assert counts == Counter(
            {
                LineEnd.SUCCEEDED: batch.num_succeeded,
                LineEnd.ERRORED: batch.num_errored,
                LineEnd.CANCELLED: batch.num_cancelled,
                LineEnd.EXPIRED: batch.num_expired,
            }
        )
        assert batch.num_ended == batch.num_lines == plan.num_lines
        left = batch.num_cancelled + batch.num_expired
        assert left == 0 or counts[_STATUS_ENDS[batch.status]] == left
        for custom_id, end in ends.items():
            answered = LineEnd.ERRORED if is_refused(custom_id) else LineEnd.SUCCEEDED
            assert end is answered or end is _STATUS_ENDS.get(batch.status)
        done = [find_usage(name) for name, end in ends.items() if end is LineEnd.SUCCEEDED]
        assert batch.usage == LineUsage(
            input_tokens=sum(each.input_tokens for each in done),
            output_tokens=sum(each.output_tokens for each in done),
        )
        if plan.dialect == "openai":
            assert not await store.batches.results(plan.id, after=-1, limit=100)
            file_ids |= {f"file-{plan.id}", batch.output_file_id, batch.error_file_id}
    page = await store.files.page(KEY, None, PageRequest(limit=100, is_ascending=True))
    assert {file.id for file in page.files} >= file_ids - {None}
    outputs = [file for file in page.files if file.purpose == "batch_output"]
    assert {file.id for file in outputs} <= file_ids


async def _read_message_ends(store: Store, plan: Plan) -> dict[str, LineEnd]:
    results = await store.batches.results(plan.id, after=-1, limit=100)
    assert [result.custom_id for result in results] == plan.custom_ids
    return {result.custom_id: result.end for result in results}


async def _read_ends(store: Store, batch: StoredBatch) -> dict[str, LineEnd]:
    """Returns the ends of the lines that are in the files of a batch."""
    ends: dict[str, LineEnd] = {}
    for file_id in (batch.output_file_id, batch.error_file_id):
        lines: list[Any] = [msgspec.json.decode(line) for line in await _read_lines(store, file_id)]
        names = [line["custom_id"] for line in lines]
        assert names == sorted(names), "the lines are not in the order of the input"
        assert not set(names) & set(ends), "a line has two results"
        for line in lines:
            error = line["error"]
            if error is not None:
                ends[line["custom_id"]] = LineEnd(error["code"].removeprefix("batch_"))
                continue
            is_good = line["response"]["status_code"] == 200
            assert is_good == (file_id == batch.output_file_id)
            ends[line["custom_id"]] = LineEnd.SUCCEEDED if is_good else LineEnd.ERRORED
    return ends
