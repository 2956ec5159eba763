"""Tests which records the store deletes by itself, and which it leaves."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import HistoryLost
from ouzel.store.records import Item, NewResponse, Status
from ouzel.store.sql_store import open_store
from tests.store.conftest import OpenStore
from tests.store.making import items, new_response, progress, texts

SHORT_S = 0.5


async def add_ended(store: Store, response_id: str, **where: str) -> None:
    record = new_response(
        response_id,
        asked=["a"],
        events=[b"e0"],
        **where,  # type: ignore[arg-type]
    )
    await store.add_response(record)
    assert await store.record(response_id, progress(Status.COMPLETED, "b"), first_event=1)


async def find_present(store: Store, *response_ids: str) -> list[str]:
    found = [await store.response(response_id, "key") for response_id in response_ids]
    return [response.id for response in found if response is not None]


async def wait_until_swept(store: Store, num_deleted: int) -> None:
    while num_deleted > 0:
        num_deleted -= await store.sweep()
        await asyncio.sleep(0.02)
    assert num_deleted == 0


async def test_unused_responses_are_deleted_and_running_ones_are_not(opened: OpenStore) -> None:
    store = await opened(max_age_s=SHORT_S)
    await add_ended(store, "resp_1")
    await store.create_conversation("conv_1", "key", {}, items("x"))
    await store.create_conversation("conv_2", "key", {}, items("y"))
    await store.add_response(new_response("resp_2"))
    await store.add_response(new_response("resp_3", status=Status.QUEUED, conversation="conv_2"))
    await wait_until_swept(store, 2)
    assert await find_present(store, "resp_1", "resp_2", "resp_3") == ["resp_2", "resp_3"]
    assert await store.conversation("conv_1", "key") is None
    assert await store.item("msg_a", "key") is None
    assert texts(await store.conversation_items("conv_2", "key")) == ["y"]


async def test_a_fresh_store_is_left_alone(store: Store) -> None:
    await add_ended(store, "resp_1")
    await store.create_conversation("conv_1", "key", {}, items("x"))
    assert await store.sweep() == 0
    assert await find_present(store, "resp_1") == ["resp_1"]


def make_large(response_id: str, previous: str | None = None) -> NewResponse:
    return NewResponse(
        id=response_id,
        key_id="key",
        model="model",
        status=Status.IN_PROGRESS,
        is_background=False,
        previous_response_id=previous,
        conversation_id=None,
        body=b"{}",
        request=None,
        input_items=(Item("msg_a", os.urandom(2**20)),),
        events=(),
    )


async def fill(store: Store, num_responses: int) -> list[str]:
    ids = [f"resp_{number}" for number in range(num_responses)]
    for response_id, previous in zip(ids, [None, *ids], strict=False):
        await store.add_response(make_large(response_id, previous))
        assert await store.record(response_id, progress(), first_event=0)
    return ids


async def test_above_its_size_the_least_recently_used_go_first(opened: OpenStore) -> None:
    store = await opened(max_bytes=4 * 2**20)
    ids = await fill(store, 6)
    assert await store.sweep() == 3
    assert await find_present(store, *ids) == ids[3:]
    with pytest.raises(HistoryLost, match="resp_2"):
        await store.history("resp_5", "key")
    assert await store.sweep() == 0


async def test_a_response_that_is_read_is_in_use_with_its_whole_history(opened: OpenStore) -> None:
    store = await opened(max_bytes=3 * 2**20)
    await store.create_conversation("conv_1", "key", {}, items("x"))
    await add_ended(store, "resp_1", conversation="conv_1")
    await add_ended(store, "resp_2", previous="resp_1")
    for unused in ("unused_1", "unused_2"):
        await store.add_response(make_large(unused))
        assert await store.record(unused, progress(), first_event=0)
    reader = await opened(max_age_s=0.0)  # notices every use, even soon after the last
    assert texts(await reader.history("resp_2", "key")) == ["x", "a", "b", "a", "b"]
    await reader.beat()
    for newer in ("newer_1", "newer_2"):
        await store.add_response(make_large(newer))
        assert await store.record(newer, progress(), first_event=0)
    assert await store.sweep() == 2
    assert await find_present(store, "unused_1", "unused_2", "newer_1", "newer_2") == [
        "newer_1",
        "newer_2",
    ]
    assert texts(await store.history("resp_2", "key")) == ["x", "a", "b", "a", "b"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_sqlite_gives_the_space_back(opened: OpenStore, tmp_path: Path) -> None:
    file = tmp_path / "small.sqlite3"
    store = await opened(url=f"sqlite:///{file}", max_bytes=2**20)
    await fill(store, 12)
    assert await store.sweep() == 12
    await store.close()  # the last connection writes the rest of the log into the file
    assert file.stat().st_size < 3 * 2**20


async def test_a_file_that_cannot_be_made_smaller_is_swept_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "emptied.sqlite3"
    with closing(sqlite3.connect(file)) as connection:
        # SQLite fixes auto_vacuum with the first table
        connection.execute("CREATE TABLE theirs (x)")
        connection.execute("DROP TABLE theirs")
    store = await open_store(f"sqlite:///{file}", max_age_s=600.0, max_bytes=2**20)
    await fill(store, 3)
    assert await store.sweep() == 3
    await store.close()
