"""Tests several processes on one database, and the records of a process that dies."""

import asyncio
import os
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from pathlib import Path

import pytest

from ouzel.store.records import Status
from ouzel.store.reserve import RESERVE_BYTES
from tests.store.conftest import OpenStore
from tests.store.making import texts
from tests.store.writer import NUM_DELETED

FOREVER = 10**9
ROOT = Path(__file__).parent.parent.parent


async def start_writer(
    url: str, prefix: str, num_responses: int, max_file_bytes: int = 0
) -> Process:
    arguments = (url, prefix, str(num_responses), str(max_file_bytes))
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.writer", *arguments, cwd=ROOT, stdout=PIPE
    )


async def read_lines(process: Process, num_lines: int) -> list[list[str]]:
    assert process.stdout is not None
    return [(await process.stdout.readline()).decode().split() for _ in range(num_lines)]


async def test_processes_that_start_and_write_together_lose_nothing(
    store_url: str, opened: OpenStore
) -> None:
    writers = [await start_writer(store_url, prefix, 25) for prefix in ("one_", "two_")]
    assert [await writer.communicate() and writer.returncode for writer in writers] == [0, 0]
    store = await opened()
    for prefix in ("one_", "two_"):
        assert texts(await store.history(f"{prefix}24", "key")) == ["a", "b"] * 25


async def test_a_killed_writer_leaves_all_records_that_it_reported(
    store_url: str, opened: OpenStore
) -> None:
    writer = await start_writer(store_url, "resp_", FOREVER)
    said = await read_lines(writer, 41)
    writer.kill()
    stdout, _ = await writer.communicate()
    said += [line.split() for line in stdout.decode().splitlines() if line.count(" ") == 1]
    store = await opened()
    for kept, response_id in said:
        response = await store.response(response_id, "key")
        assert response is not None
        assert response.status is Status.COMPLETED or kept == "added"
        assert len(await store.events(response_id, "key", after=-1)) == response.num_events
    last_ended = [response_id for kept, response_id in said if kept == "ended"][-1]
    num_ended = int(last_ended.removeprefix("resp_")) + 1
    assert texts(await store.history(last_ended, "key")) == ["a", "b"] * num_ended
    if store_url.startswith("sqlite"):
        with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_a_full_disk_is_a_typed_error_that_deleting_ends(
    store_url: str, opened: OpenStore
) -> None:
    writer = await start_writer(store_url, "resp_", FOREVER, max_file_bytes=500_000)
    stdout, _ = await writer.communicate()
    *lines, unavailable, read, deleted, added = stdout.decode().splitlines()
    assert writer.returncode == 0
    assert (
        unavailable == "unavailable the store cannot be used now: there is no room left on its disk"
    )
    assert [read, deleted, added] == ["read", "deleted", "added new"]
    store = await opened()
    for response_id in {line.split()[1] for line in lines}:
        is_deleted = int(response_id.removeprefix("resp_")) < NUM_DELETED
        assert (await store.response(response_id, "key") is None) == is_deleted
    assert await store.response("resp_new", "key") is not None


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_disk_space_for_deleting_is_reserved(store_url: str, opened: OpenStore) -> None:
    await opened()
    reserve = os.stat(store_url.removeprefix("sqlite:///") + "-reserve")
    assert reserve.st_blocks * 512 >= RESERVE_BYTES
    assert reserve.st_mode & 0o777 == 0o600
