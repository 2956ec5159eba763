"""A server is killed at every moment of a loop of tools, and another server goes on.

The store only changes when the server writes. Each write therefore stands for all kills up to the
next one: the test copies the database after each write and lets another server take the copy over.
"""

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from ouzel.config import LimitsConfig
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.responses.compaction.compactor import Compactor
from ouzel.responses.compaction.summariser import Summariser
from ouzel.responses.hosted.web_search import SearchAction, WebSearchCall
from ouzel.responses.preparer import Preparer
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.runs import Runs
from ouzel.responses.stored_progress import decode_response
from ouzel.store.base import Store
from ouzel.store.records import Item, NewResponse, Progress
from ouzel.store.sql_store import SqlStore, open_store
from ouzel.worker_threads import PreparationThreads
from tests.api.responses.searching import SearchKind, search_kinds
from tests.api.responses.test_tools import write_call
from tests.responses.conftest import build_model

RESULTS = {
    "first": "\n".join(write_call("web_search", {"query": query}) for query in ("left", "right")),
    "right": write_call("web_search", {"query": "last"}),
    "last": "the end",
}


@dataclass(frozen=True)
class Moment:
    """The state of the store after a write, and the calls that had begun before the write."""

    file: Path
    queries: tuple[str, ...]


class CopiedStore:
    """Copies the database after each write of a response."""

    def __init__(self, store: SqlStore, file: Path, kind: SearchKind) -> None:
        self._store = store
        self._file = file
        self._kind = kind
        self.moments: list[Moment] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def add_response(self, new: NewResponse, output_items: Sequence[Item] = ()) -> None:
        queries = tuple(self._kind.queries)
        await self._store.add_response(new, output_items)
        self._copy(queries)

    async def record(self, response_id: str, progress: Progress, *, first_event: int) -> bool:
        queries = tuple(self._kind.queries)
        is_done = await self._store.record(response_id, progress, first_event=first_event)
        self._copy(queries)
        return is_done

    def _copy(self, queries: tuple[str, ...]) -> None:
        file = self._file.with_name(f"moment{len(self.moments)}.sqlite3")
        with closing(sqlite3.connect(self._file)) as source, closing(sqlite3.connect(file)) as copy:
            source.backup(copy)
            copy.execute("DELETE FROM servers")  # the lease of the killed server is over
            copy.commit()
        self.moments.append(Moment(file, queries))


def make_preparer(model: ServedModel, store: Store, kind: SearchKind) -> Preparer:
    threads, metrics, limits = PreparationThreads(), Metrics("parrot"), LimitsConfig()
    compactor = Compactor(model, threads, Summariser(model, limits, threads, metrics))
    return Preparer(
        model,
        limits,
        store,
        threads,
        compactor=compactor,
        metrics=metrics,
        hosted=search_kinds(kind),
    )


@pytest.fixture
async def quick_engine() -> AsyncIterator[EngineClient]:
    options: dict[str, object] = {"vocab_size": 260, "step_s": 0.001}
    spec = EngineSpec(factory="tests.api.engines:create_parrot", options=options)
    client = EngineClient(spec, in_thread=True)
    await client.start()
    yield client
    await client.close()


def new_kind(*, is_repeatable: bool) -> SearchKind:
    return SearchKind(find=lambda query: RESULTS.get(query, "nothing"), is_repeatable=is_repeatable)


async def make_response(
    model: ServedModel, file: Path, kind: SearchKind, **fields: object
) -> tuple[ResponseObject, list[Moment]]:
    """Makes a response in the background; returns it with the moments of its store."""
    real = await open_store(f"sqlite:///{file}", max_age_s=3600, max_bytes=2**30)
    store = CopiedStore(real, file, kind)
    as_store: Store = store  # type: ignore[assignment]
    preparer = make_preparer(model, as_store, kind)
    runs = Runs(lambda: [preparer], as_store)
    text = write_call("web_search", {"query": "first"})
    body = msgspec.json.encode(
        {"input": text, "background": True, "tools": [{"type": "web_search"}], **fields}
    )
    with ExitStack() as place:
        place.enter_context(model.engine.admit())
        prepared = await preparer.prepare(body, key_id=None, arrival_s=time.perf_counter())
        run = runs.start(prepared, key_id=None, place=place.pop_all())
    await run.log.closed()
    await runs.close()
    await real.close()
    return run.response, store.moments


@dataclass(frozen=True)
class Continued:
    """A response that another server has ended."""

    response: ResponseObject
    numbers: list[int]  # the numbers of its events
    moments: list[Moment]  # the states of the store while it went on


async def go_on(
    model: ServedModel, moment: Moment, kind: SearchKind, response_id: str
) -> Continued:
    """Lets a new server take a copy of the moment over, until the response has ended."""
    file = moment.file.with_name(f"{moment.file.stem}-goes-on") / "responses.sqlite3"
    file.parent.mkdir()
    shutil.copy(moment.file, file)
    real = await open_store(f"sqlite:///{file}", max_age_s=3600, max_bytes=2**30)
    copied = CopiedStore(real, file, kind)
    store: Store = copied  # type: ignore[assignment]
    preparer = make_preparer(model, store, kind)
    runs = Runs(lambda: [preparer], store)
    watching = asyncio.create_task(runs.watch())
    while True:
        stored = await store.response(response_id, None)
        assert stored is not None
        if stored.status.is_final:
            break
        await asyncio.sleep(0.005)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    events = await store.events(response_id, None, after=-1)
    await runs.close()
    await store.close()
    numbers = [json.loads(event)["sequence_number"] for event in events]
    return Continued(decode_response(stored), numbers, copied.moments)


def list_queries(response: ResponseObject) -> list[str]:
    searches = [item for item in response.output if isinstance(item, WebSearchCall)]
    return [item.action.query for item in searches if isinstance(item.action, SearchAction)]


@pytest.mark.parametrize("is_repeatable", [True, False])
async def test_nothing_is_lost_and_no_effect_comes_twice(
    quick_engine: EngineClient, tmp_path: Path, is_repeatable: bool
) -> None:
    model = build_model(quick_engine)
    first_kind = new_kind(is_repeatable=is_repeatable)
    whole, moments = await make_response(model, tmp_path / "responses.sqlite3", first_kind)
    assert whole.status == "completed"
    assert list_queries(whole) == ["first", "left", "right", "last"]
    assert len(moments) > 4
    ends = [*(following.queries for _, following in pairwise(moments)), moments[-1].queries]
    for moment, begun_queries in zip(moments, ends, strict=True):
        kind = new_kind(is_repeatable=is_repeatable)
        continued = await go_on(model, moment, kind, whole.id)
        resumed, numbers = continued.response, continued.numbers
        assert resumed.status == "completed", (moment, resumed.error)
        assert numbers == list(range(len(numbers)))
        assert kind.num_open == 0
        if is_repeatable:
            assert set(list_queries(resumed)) == {"first", "left", "right", "last"}
            assert "the end" in str(resumed.output[-1])
        else:
            assert not set(kind.queries) & set(begun_queries), moment


async def test_a_second_kill_loses_and_repeats_nothing_either(
    quick_engine: EngineClient, tmp_path: Path
) -> None:
    model = build_model(quick_engine)
    first_kind = new_kind(is_repeatable=False)
    whole, moments = await make_response(model, tmp_path / "responses.sqlite3", first_kind)
    middle = next(moment for moment in moments if "right" in moment.queries)
    second_kind = new_kind(is_repeatable=False)
    again = await go_on(model, middle, second_kind, whole.id)
    earlier = set(middle.queries)
    assert earlier >= {"first", "left", "right"}
    for moment in again.moments:
        kind = new_kind(is_repeatable=False)
        resumed = (await go_on(model, moment, kind, whole.id)).response
        assert resumed.status == "completed"
        assert not set(kind.queries) & (earlier | set(moment.queries)), moment
        assert [query for query in list_queries(resumed) if query in earlier] == [
            "first",
            "left",
            "right",
        ]


def count_output_tokens(response: ResponseObject) -> int:
    assert response.usage is not None
    return response.usage.output_tokens


async def test_the_usage_covers_the_time_before_the_kill(
    quick_engine: EngineClient, tmp_path: Path
) -> None:
    model = build_model(quick_engine)
    first_kind = new_kind(is_repeatable=True)
    whole, moments = await make_response(model, tmp_path / "responses.sqlite3", first_kind)
    for moment in moments:
        resumed = (await go_on(model, moment, new_kind(is_repeatable=True), whole.id)).response
        assert count_output_tokens(resumed) >= count_output_tokens(whole), moment
        assert resumed.usage is not None and whole.usage is not None
        assert resumed.usage.input_tokens >= whole.usage.input_tokens


async def test_the_limit_of_output_tokens_holds_over_a_kill(
    quick_engine: EngineClient, tmp_path: Path
) -> None:
    model = build_model(quick_engine)
    (tmp_path / "unlimited").mkdir()
    file = tmp_path / "unlimited" / "responses.sqlite3"
    unlimited, _ = await make_response(model, file, new_kind(is_repeatable=True))
    limit = count_output_tokens(unlimited) - 3
    whole, moments = await make_response(
        model,
        tmp_path / "responses.sqlite3",
        new_kind(is_repeatable=True),
        max_output_tokens=limit,
    )
    assert whole.status == "incomplete"
    assert count_output_tokens(whole) == limit
    for moment in moments[:-1]:
        resumed = (await go_on(model, moment, new_kind(is_repeatable=True), whole.id)).response
        assert resumed.status == "incomplete", moment
        assert count_output_tokens(resumed) <= limit
