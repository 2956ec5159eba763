"""Stored batches: lines, owners and results, over both databases."""

import asyncio
import random

import pytest

from ouzel.store.base import Store
from ouzel.store.batches.records import (
    BatchPageRequest,
    BatchStatus,
    LineEnd,
    LineResult,
    LineUsage,
    NewBatch,
    NewLine,
    StoredBatch,
)
from ouzel.store.files.records import NewFile
from tests.store.conftest import OpenStore

KEY = "key-1"


def new_batch(batch_id: str, *, key_id: str | None = KEY, window_s: int = 86400) -> NewBatch:
    return NewBatch(
        id=batch_id,
        key_id=key_id,
        dialect="openai",
        endpoint="/v1/chat/completions",
        input_file_id="file-1",
        window_s=window_s,
        metadata=None,
        output_expires_after_s=None,
    )


def make_lines(num_lines: int) -> list[NewLine]:
    return [NewLine(f"line-{number}", b"{}") for number in range(num_lines)]


def succeed(position: int, text: bytes = b"ok") -> LineResult:
    return LineResult(
        position=position,
        end=LineEnd.SUCCEEDED,
        result=text,
        usage=LineUsage(input_tokens=3, output_tokens=2),
    )


async def start(store: Store, batch_id: str, num_lines: int = 4) -> None:
    await store.batches.add(new_batch(batch_id))
    assert await store.batches.claim(batch_id, [BatchStatus.VALIDATING])
    assert await store.batches.add_lines(batch_id, 0, make_lines(num_lines))
    assert await store.batches.start(batch_id, model="demo", num_lines=num_lines)


async def read(store: Store, batch_id: str) -> StoredBatch:
    batch = await store.batches.get(batch_id, KEY, "openai")
    assert batch is not None
    return batch


async def test_a_batch_runs_from_its_lines_to_its_results(store: Store) -> None:
    await start(store, "batch_1")
    lines = await store.batches.take_lines("batch_1", 10)
    assert [line.custom_id for line in lines] == ["line-0", "line-1", "line-2", "line-3"]

    written = await store.batches.finish_lines(
        "batch_1",
        [
            succeed(0),
            LineResult(position=1, end=LineEnd.ERRORED, result=b"no"),
            succeed(3),
            succeed(2),
        ],
    )
    assert written == 4
    assert await store.batches.begin_finalizing("batch_1")
    results = await store.batches.results("batch_1", after=-1, limit=10)
    assert [(each.position, each.result) for each in results] == [
        (0, b"ok"),
        (1, b"no"),
        (2, b"ok"),
        (3, b"ok"),
    ]
    await store.files.begin(NewFile(id="file-2", key_id=KEY, filename="output.jsonl"))
    assert await store.files.get("file-2", KEY) is None
    assert await store.batches.close_batch(
        "batch_1", BatchStatus.COMPLETED, output_file_id="file-2", keeps_lines=False
    )
    assert await store.files.get("file-2", KEY) is not None
    batch = await read(store, "batch_1")
    assert (batch.status, batch.num_succeeded, batch.num_errored) == (BatchStatus.COMPLETED, 3, 1)
    assert batch.usage == LineUsage(input_tokens=9, output_tokens=6)
    assert batch.output_file_id == "file-2"
    assert await store.batches.results("batch_1", after=-1, limit=10) == []


async def test_a_result_is_written_once_and_only_by_the_owner(opened: OpenStore) -> None:
    first, second = await opened(), await opened()
    await start(first, "batch_1", 2)
    assert len(await first.batches.take_lines("batch_1", 1)) == 1
    assert [line.position for line in await second.batches.take_lines("batch_1", 5)] == [1]

    assert await second.batches.finish_lines("batch_1", [succeed(0, b"not its own")]) == 0
    assert await first.batches.finish_lines("batch_1", [succeed(0, b"first")]) == 1
    assert await first.batches.finish_lines("batch_1", [succeed(0, b"again")]) == 0
    results = await first.batches.results("batch_1", after=-1, limit=10)
    assert [each.result for each in results] == [b"first"]
    assert (await read(first, "batch_1")).num_succeeded == 1


async def test_lines_of_a_server_without_a_lease_are_taken_by_another(opened: OpenStore) -> None:
    dead, living = await opened(lease_s=0.01), await opened()
    await start(dead, "batch_1", 3)
    assert len(await dead.batches.take_lines("batch_1", 2)) == 2
    taken: list[int] = []
    while len(taken) < 3:  # until the lease is over
        taken += [line.position for line in await living.batches.take_lines("batch_1", 5)]
        await asyncio.sleep(0.01)

    assert sorted(taken) == [0, 1, 2]
    assert await dead.batches.finish_lines("batch_1", [succeed(0)]) == 0
    assert await living.batches.finish_lines("batch_1", [succeed(0)]) == 1


async def test_released_lines_are_taken_again(opened: OpenStore) -> None:
    first, second = await opened(), await opened()
    await start(first, "batch_1", 2)
    await first.batches.take_lines("batch_1", 2)
    assert await second.batches.take_lines("batch_1", 2) == []

    await first.batches.release_lines("batch_1", [1])

    assert [line.position for line in await second.batches.take_lines("batch_1", 2)] == [1]


async def test_servers_that_share_a_batch_take_each_line_once(opened: OpenStore) -> None:
    stores = [await opened() for _ in range(3)]
    await start(stores[0], "batch_1", 60)

    async def work(store: Store, seed: int) -> list[int]:
        random_ = random.Random(seed)
        done: list[int] = []
        while lines := await store.batches.take_lines("batch_1", random_.randrange(1, 6)):
            positions = [line.position for line in lines]
            await store.batches.finish_lines("batch_1", [succeed(each) for each in positions])
            done += positions
        return done

    done = await asyncio.gather(*(work(store, seed) for seed, store in enumerate(stores)))

    assert sorted(position for each in done for position in each) == list(range(60))
    assert (await read(stores[0], "batch_1")).num_succeeded == 60
    finalizing = await asyncio.gather(
        *(store.batches.begin_finalizing("batch_1") for store in stores)
    )
    assert sorted(finalizing) == [False, False, True]


async def test_a_cancelled_batch_gives_no_more_lines_and_ends_the_open_ones(
    opened: OpenStore,
) -> None:
    first, second = await opened(), await opened()
    await start(first, "batch_1", 4)
    await first.batches.take_lines("batch_1", 1)
    await second.batches.take_lines("batch_1", 1)
    batch = await first.batches.cancel("batch_1", KEY, "openai")
    assert batch is not None
    assert batch.status is BatchStatus.CANCELLING

    assert await first.batches.take_lines("batch_1", 4) == []
    assert await second.batches.claim("batch_1", [BatchStatus.CANCELLING])
    assert await second.batches.end_open("batch_1", LineEnd.CANCELLED) == 1  # the first server's
    assert await first.batches.finish_lines("batch_1", [succeed(0)]) == 1
    assert await second.batches.end_open("batch_1", LineEnd.CANCELLED) == 0
    assert await second.batches.close_batch("batch_1", BatchStatus.CANCELLED, keeps_lines=True)
    batch = await read(first, "batch_1")
    assert (batch.num_succeeded, batch.num_cancelled) == (1, 3)


async def test_a_validation_belongs_to_one_server_until_its_lease_ends(opened: OpenStore) -> None:
    dead, living = await opened(lease_s=0.01), await opened()
    await dead.batches.add(new_batch("batch_1"))
    assert await dead.batches.claim("batch_1", [BatchStatus.VALIDATING])
    assert await dead.batches.add_lines("batch_1", 0, make_lines(3))
    while not await living.batches.claim("batch_1", [BatchStatus.VALIDATING]):
        await asyncio.sleep(0.01)

    await living.batches.clear_lines("batch_1")
    assert await living.batches.add_lines("batch_1", 0, make_lines(2))
    assert not await dead.batches.add_lines("batch_1", 3, make_lines(1))
    assert not await dead.batches.start("batch_1", model="demo", num_lines=4)
    assert await living.batches.start("batch_1", model="demo", num_lines=2)
    assert len(await living.batches.take_lines("batch_1", 9)) == 2


async def test_a_key_finds_only_its_own_batches(store: Store) -> None:
    await store.batches.add(new_batch("batch_1"))
    await store.batches.add(new_batch("batch_2", key_id=None))

    assert await store.batches.get("batch_2", KEY, "openai") is None
    assert await store.batches.get("batch_1", None, "openai") is None
    assert await store.batches.get("batch_1", KEY, "anthropic") is None
    assert await store.batches.cancel("batch_1", "key-2", "openai") is None
    assert await store.batches.count_unfinished(KEY) == 1
    page = await store.batches.page(None, "openai", BatchPageRequest(limit=5))
    assert page is not None
    assert [batch.id for batch in page.batches] == ["batch_2"]


async def test_pages_go_from_the_newest_batch_to_the_oldest(store: Store) -> None:
    for number in range(5):
        await store.batches.add(new_batch(f"batch_{number}"))

    async def page(**fields: str) -> tuple[list[str], bool]:
        found = await store.batches.page(KEY, "openai", BatchPageRequest(limit=2, **fields))
        assert found is not None
        return [batch.id for batch in found.batches], found.has_more

    assert await page() == (["batch_4", "batch_3"], True)
    assert await page(after="batch_3") == (["batch_2", "batch_1"], True)
    assert await page(after="batch_1") == (["batch_0"], False)
    assert await page(before="batch_1") == (["batch_3", "batch_2"], True)
    assert await store.batches.page(KEY, "openai", BatchPageRequest(limit=2, after="x")) is None


async def test_only_batches_that_have_ended_are_deleted(store: Store) -> None:
    await start(store, "batch_1")
    assert not await store.batches.delete("batch_1", KEY, "openai")
    await store.batches.take_lines("batch_1", 9)
    await store.batches.finish_lines("batch_1", [succeed(position) for position in range(4)])
    assert await store.batches.begin_finalizing("batch_1")
    await store.batches.close_batch("batch_1", BatchStatus.COMPLETED, keeps_lines=True)
    assert await store.batches.sweep(max_age_s=3600) == 0

    assert await store.batches.sweep(max_age_s=-1) == 1
    assert await store.batches.get("batch_1", KEY, "openai") is None
    assert await store.batches.results("batch_1", after=-1, limit=9) == []


@pytest.mark.parametrize(("window_s", "is_overdue"), [(86400, False), (0, True)])
async def test_a_batch_is_overdue_after_its_window(
    store: Store, window_s: int, is_overdue: bool
) -> None:
    await store.batches.add(new_batch("batch_1", window_s=window_s))
    (batch,) = await store.batches.unfinished()
    assert batch.is_overdue is is_overdue
