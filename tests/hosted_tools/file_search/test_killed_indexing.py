"""Servers are killed, frozen and disturbed at every step of the indexing of files.

After each such case the store must be as it is after an undisturbed run.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any  # rows

import numpy as np
import pytest
from sqlalchemy import Connection, select, text

from ouzel.errors import OuzelError
from ouzel.hosted_tools.file_search.embedder import TextKind, Vectors
from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.hosted_tools.file_search.indexer import Indexer
from ouzel.hosted_tools.file_search.indexing import FileIndexing
from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.files.records import NewFile
from ouzel.store.vector_stores.records import FileCounts, NewVectorFile, NewVectorStore
from ouzel.store.vector_stores.tables import (
    vector_store_chunks,
    vector_store_files,
    vector_store_vectors,
    vector_store_waste,
)
from tests.store.watched import Moment, StoreCopies, WatchedStore, open_watched

STORE, BATCH = "vs_1", "vsfb_1"
ON_POSTGRES = 4  # one of so many moments is tested there
IN_ORDINARY_RUNS = 2  # one of so many moments is tested unless `--release` is given
STRATEGY = b'{"type":"static","static":{"max_chunk_size_tokens":8,"chunk_overlap_tokens":0}}'
# The long file has more chunks than one transaction stores.
TEXTS = {
    "short": "one two three",
    "long": " ".join(f"word{number}." for number in range(600)),
    "unreadable": "",
    "refused": "refused " * 600,
}
DONE = FileCounts(completed=2, failed=2)
State = dict[str, Any]


class WordEmbedder:
    """Makes a vector of the length of a text; a token is a word."""

    def choose_model(self) -> str:
        return "embedder"

    async def max_tokens(self, model: str) -> int:
        return 500

    async def count_tokens(self, model: str, texts: Sequence[str]) -> list[int]:
        return [len(each.split()) for each in texts]

    async def embed(
        self, model: str, texts: Sequence[str], kind: TextKind, *, key_id: str | None
    ) -> Vectors:
        if len(texts) < 64 and "refused" in texts[0]:  # only after chunks are stored
            raise OuzelError("the model refuses this text")
        return np.array([[len(each), 1.0] for each in texts], np.float32)


class PlainExtractor:
    """Reads texts in this process."""

    async def read_text(self, filename: str, data: bytes) -> str:
        if not data:
            raise UnreadableFile("invalid_file", "the file has no text")
        return data.decode()

    def close(self) -> None:
        pass


class IndexServer:
    """One server; its indexer runs from `start` on."""

    def __init__(self, url: str) -> None:
        self.watched = open_watched(url)
        self.store = self.watched.store
        self.database = self.watched.database
        extractor: Any = PlainExtractor()  # it has the methods of an `Extractor`
        indexing = FileIndexing(
            self.store.vector_stores, self.store.files, WordEmbedder(), extractor
        )
        self._has_new_files = asyncio.Event()
        self.indexer = Indexer(self.store, indexing, has_new_files=self._has_new_files)
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._watching = asyncio.create_task(self.indexer.watch())

    async def kill(self) -> None:
        self.database.freeze()
        await self.database.bury()
        await self._stop_watching()

    async def stop(self) -> None:
        await self.indexer.drain()
        await self._stop_watching()
        await self.store.close()

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with suppress(asyncio.CancelledError):
                await self._watching


async def add_files(store: Store) -> None:
    """Makes a vector store with one file, and adds the others as a batch."""
    new_files = []
    for name, content in TEXTS.items():
        await store.files.begin(NewFile(id=f"file-{name}", key_id=None, filename=f"{name}.txt"))
        await store.files.add_piece(f"file-{name}", 0, content.encode())
        await store.files.finish(f"file-{name}", "assistants")
        new_files.append(
            NewVectorFile(
                file_id=f"file-{name}",
                filename=f"{name}.txt",
                attributes=b"{}",
                strategy=STRATEGY,
            )
        )
    await store.vector_stores.create(
        NewVectorStore(
            id=STORE,
            key_id=None,
            name="one",
            description=None,
            metadata=b"{}",
            model="embedder",
            expires_after_days=None,
        ),
        new_files[:1],
    )
    await store.vector_stores.add_files(
        STORE, None, new_files[1:], batch_id=BATCH, max_files=len(TEXTS)
    )


@pytest.fixture(params=["sqlite", "postgres"])
async def copies(
    request: pytest.FixtureRequest, tmp_path: Path, before_release: bool
) -> StoreCopies:
    postgres = None
    if request.param == "postgres":
        postgres = request.getfixturevalue("postgres_server")
    copies = StoreCopies(tmp_path, postgres, is_thorough=before_release)
    await copies.prepare(add_files)
    return copies


def read_rows(connection: Connection) -> State:
    """Returns all rows about files and chunks, except their numbers."""
    files, chunks = vector_store_files.c, vector_store_chunks.c
    vectors = vector_store_vectors.c
    by_file = select(files.file_id, files.status, files.error_code, files.usage_bytes)
    numbers = connection.execute(select(files.number, files.file_id))
    names = {row.number: row.file_id for row in numbers}
    chunk_rows = connection.execute(
        select(chunks.file_number, chunks.position, chunks.start, chunks.text)
    )
    vector_rows = connection.execute(
        select(vectors.file_number, vectors.part, vectors.positions, vectors.vectors)
    )
    words = connection.execute(text("SELECT count(*) FROM vector_store_words"))
    return {
        "files": sorted(map(tuple, connection.execute(by_file))),
        "chunks": sorted((names.get(row[0]), *row[1:]) for row in chunk_rows),
        "vectors": sorted((names.get(row[0]), row[1], *map(bytes, row[2:])) for row in vector_rows),
        "words": words.scalar_one(),
        "waste": list(connection.execute(select(vector_store_waste.c.file_number))),
    }


class Case:
    """A fresh copy of the store, and the servers that use it."""

    def __init__(self, url: str, observer: WatchedStore) -> None:
        self.observer = observer
        self._url = url

    def new_server(self) -> IndexServer:
        return IndexServer(self._url)

    async def freeze(self, server: IndexServer, moment: Moment) -> None:
        """Runs the server to a moment, or until all files are done."""

        async def freeze(now: Moment) -> None:
            if now == moment:
                server.database.freeze()
                is_frozen.set()

        is_frozen = asyncio.Event()
        server.database.at_moment = freeze
        server.start()
        tasks = {
            asyncio.create_task(is_frozen.wait()),
            asyncio.create_task(self.wait_for_the_end()),
        }
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        server.database.at_moment = None
        await server.database.settle()

    async def wait_for_the_end(self) -> None:
        """Waits until no file that exists is in progress."""
        while (
            found := await self.observer.store.vector_stores.get(STORE, None)
        ) is not None and found.counts.in_progress:
            await asyncio.sleep(0.005)

    async def read_state(self) -> State:
        """Returns the rows after a sweep, which only frees deleted files."""
        await finish_work()
        await self.observer.store.sweep()
        state: State = await self.observer.database.read(read_rows)
        return state


async def finish_work() -> None:
    """Waits for the tasks of indexers about single files."""
    while tasks := [t for t in asyncio.all_tasks() if t.get_name().startswith("indexing of")]:
        await asyncio.wait(tasks)


@asynccontextmanager
async def new_case(copies: StoreCopies) -> AsyncIterator[Case]:
    url = copies.copy()
    observer = open_watched(url)
    try:
        yield Case(url, observer)
    finally:
        await observer.store.close()
    copies.remove(url)


async def run_undisturbed(copies: StoreCopies) -> tuple[State, Sequence[Moment]]:
    """Returns the rows at the end, and the moments after writes (only some on Postgres)."""
    async with new_case(copies) as case:
        server = case.new_server()
        server.start()
        await case.wait_for_the_end()
        moments = [moment for moment in server.database.moments if moment.is_done]
        await server.stop()
        state = await case.read_state()
        vector_store = await case.observer.store.vector_stores.get(STORE, None)
        assert vector_store is not None and vector_store.counts == DONE
    per_file = Counter(name for name, *_ in state["chunks"])
    assert per_file["file-short"] == 1
    assert per_file["file-long"] > 64
    assert len(per_file) == 2
    assert state["words"] == len(state["chunks"])
    step = ON_POSTGRES if copies.is_postgres else 1
    if not copies.is_thorough:
        step *= IN_ORDINARY_RUNS
    return state, moments[step // 2 :: step]


async def check(case: Case, whole: State) -> None:
    assert await case.read_state() == whole
    batch = await case.observer.store.vector_stores.batch(STORE, None, BATCH)
    assert batch is not None
    assert batch.counts == FileCounts(completed=1, failed=2)


async def test_kill_9_after_each_write(copies: StoreCopies) -> None:
    whole, moments = await run_undisturbed(copies)
    assert len(moments) > (10 if copies.is_thorough and not copies.is_postgres else 1)
    for moment in moments:
        async with new_case(copies) as case:
            first, second = case.new_server(), case.new_server()
            await case.freeze(first, moment)
            await first.kill()
            await case.observer.end_lease(first.watched)
            second.start()
            await case.wait_for_the_end()
            await check(case, whole)
            await second.stop()


async def test_a_server_that_slept_through_its_lease_does_no_harm(copies: StoreCopies) -> None:
    whole, moments = await run_undisturbed(copies)
    random_ = random.Random(1)
    for moment in moments:
        wakes_at = random_.randrange(1, 2 * moments[-1].number)
        async with new_case(copies) as case:
            sleeper, second = case.new_server(), case.new_server()
            await case.freeze(sleeper, moment)
            await case.observer.end_lease(sleeper.watched)

            async def wake(now: Moment, server: IndexServer, number: int) -> None:
                if now.number == number:
                    server.database.thaw()

            second.database.at_moment = lambda now, s=sleeper, n=wakes_at: wake(now, s, n)
            second.start()
            await case.wait_for_the_end()
            sleeper.database.thaw()
            await check(case, whole)
            await sleeper.stop()
            await second.stop()


async def test_a_fault_of_the_store_only_delays_the_indexing(copies: StoreCopies) -> None:
    """Loses the answer of a write, and so that of the two tries that follow a lost taking."""
    whole, moments = await run_undisturbed(copies)

    async def run_with_faults(moment: Moment) -> None:
        numbers = range(moment.number, moment.number + 7, 3)  # a taking has 3 transactions
        async with new_case(copies) as case:
            server = case.new_server()

            async def fail(now: Moment) -> None:
                if now.number in numbers and now.is_done:
                    raise StoreUnavailable("the connection is lost", retry_after_s=1.0)

            server.database.at_moment = fail
            server.start()
            await case.wait_for_the_end()
            await server.stop()
            await check(case, whole)

    async with asyncio.TaskGroup() as group:
        for moment in moments:
            group.create_task(run_with_faults(moment))


async def test_what_is_deleted_in_the_middle_leaves_nothing(copies: StoreCopies) -> None:
    whole, moments = await run_undisturbed(copies)
    for number, moment in enumerate(moments):
        async with new_case(copies) as case:
            server, second = case.new_server(), case.new_server()
            await case.freeze(server, moment)
            stores = case.observer.store.vector_stores
            gone = {"file-long"}
            match number % 3:
                case 0:
                    assert await stores.remove_file(STORE, None, "file-long")
                case 1:
                    assert await case.observer.store.files.delete("file-long", None)
                case _:
                    assert await stores.delete(STORE, None)
                    gone = {f"file-{name}" for name in TEXTS}
            if number % 2:
                await server.kill()
                await case.observer.end_lease(server.watched)
                second.start()
            else:
                server.database.thaw()
            await case.wait_for_the_end()
            state = await case.read_state()
            for kind in ("files", "chunks", "vectors"):
                assert state[kind] == [row for row in whole[kind] if row[0] not in gone], moment
            assert state["words"] == len(state["chunks"])
            assert state["waste"] == []
            if not number % 2:
                await server.stop()
            await second.stop()
