"""Databases may be unusable at the start or later."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import psycopg
import pytest

from ouzel.store.errors import StoreOpenError, StoreUnavailable
from ouzel.store.sql_store import open_store
from ouzel.store.tables import VERSION
from tests.postgres import PostgresServer, running_postgres
from tests.store.conftest import OpenStore
from tests.store.making import new_response
from tests.tries import MAX_TRIES

T = TypeVar("T")
TOO_LATE = "the transactions before this one waited for the lock too long"


def execute(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        with closing(
            sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        ) as connection:
            connection.execute(statement)
    else:
        with psycopg.connect(url) as server:
            server.execute(statement.encode())


async def test_a_store_of_a_newer_version_is_refused_and_left_alone(
    store_url: str, opened: OpenStore
) -> None:
    store = await opened()
    await store.add_response(new_response("resp_1"))
    execute(store_url, "UPDATE schema_version SET version = 1000")
    with pytest.raises(
        StoreOpenError,
        match=f"newer Ouzel: its schema has version 1000, this one knows up to {VERSION}$",
    ):
        await opened()
    execute(store_url, f"UPDATE schema_version SET version = {VERSION}")
    assert await (await opened()).response("resp_1", "key") is not None


async def test_a_store_is_found_again_as_it_was_left(opened: OpenStore) -> None:
    first = await opened()
    await first.add_response(new_response("resp_1"))
    before = await first.response("resp_1", "key")
    await first.close()
    assert before is not None
    assert await (await opened()).response("resp_1", "key") == before


async def test_after_closing_a_store_is_unavailable(opened: OpenStore) -> None:
    store = await opened()
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.response("resp_1", "key")


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database " * 100)
    with pytest.raises(StoreOpenError, match="not a database"):
        await open_store(f"sqlite:///{file}", max_age_s=1.0, max_bytes=1)
    assert file.read_text() == "not a database " * 100


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_sqlite_is_read_while_another_process_writes(
    store_url: str, opened: OpenStore
) -> None:
    store = await opened()
    await store.add_response(new_response("resp_1"))
    with closing(
        sqlite3.connect(store_url.removeprefix("sqlite:///"), isolation_level=None)
    ) as another:
        another.execute("BEGIN IMMEDIATE")
        assert await store.response("resp_1", "key") is not None
        another.execute("COMMIT")


@pytest.fixture
def own_postgres(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """Starts a Postgres that a test may stop."""
    with running_postgres(postgres_server.binaries) as server:
        yield server


async def test_a_postgres_that_goes_away_is_a_typed_error_until_it_is_back(
    own_postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_store(own_postgres.new_database(), max_age_s=60.0, max_bytes=2**20)
    await store.add_response(new_response("resp_1"))
    own_postgres.stop()
    with pytest.raises(StoreUnavailable) as caught:
        await store.response("resp_1", "key")
    assert (caught.value.status, caught.value.code) == (503, "store_unavailable")
    assert str(caught.value) == "the store cannot be used now: its database is out of reach"
    with pytest.raises(StoreUnavailable):
        await store.add_response(new_response("resp_2"))
    assert own_postgres.directory in caplog.text, "the details are in the log"
    own_postgres.start()
    assert await store.response("resp_1", "key") is not None
    await store.add_response(new_response("resp_2"))
    await store.close()


async def retry_until_in_time(attempt: Callable[[], Awaitable[T]]) -> T:
    """Tries again if the store's thread came too late to try.

    On a busy machine this may take longer than `busy_s`.
    """
    while True:
        try:
            return await attempt()
        except (StoreOpenError, StoreUnavailable) as error:
            if TOO_LATE not in f"{error} {error.__cause__}":
                raise


async def test_a_lock_is_waited_for_once_and_not_by_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "responses.sqlite3"
    store = await retry_until_in_time(
        lambda: open_store(f"sqlite:///{file}", busy_s=0.5, max_age_s=3600, max_bytes=2**30)
    )
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        adding = [store.add_response(new_response(f"resp_{number}")) for number in range(8)]
        faults = await asyncio.gather(*adding, return_exceptions=True)
        assert {str(fault) for fault in faults} == {
            "the store cannot be used now: another program holds its lock"
        }
        assert all(isinstance(fault, StoreUnavailable) for fault in faults)
    await retry_until_in_time(lambda: store.add_response(new_response("resp_9")))
    await store.close()


async def test_a_second_caller_waits_for_a_lock_no_longer_than_the_first(
    tmp_path: Path,
) -> None:
    file, busy_s = tmp_path / "responses.sqlite3", 2.0
    store = await open_store(f"sqlite:///{file}", busy_s=busy_s, max_age_s=3600, max_bytes=2**30)

    async def wait_in_vain(response_id: str, *, after_s: float) -> None:
        await asyncio.sleep(after_s)
        with pytest.raises(StoreUnavailable):
            await store.add_response(new_response(response_id))

    # the duration of each try: other work on the machine may delay one of them
    whole_s: list[float] = []
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        while len(whole_s) < MAX_TRIES and min(whole_s, default=3 * busy_s) >= 3 * busy_s:
            start_s = time.monotonic()
            await asyncio.gather(
                *(wait_in_vain(f"resp_{n}", after_s=n * busy_s / 4) for n in range(4))
            )
            whole_s.append(time.monotonic() - start_s)
    await store.close()
    assert min(whole_s) < 3 * busy_s, (
        f"each waits its own {busy_s} s, and not after the others: {whole_s}"
    )


async def test_a_table_of_postgres_that_is_locked_is_a_typed_error(postgres_url: str) -> None:
    store = await retry_until_in_time(
        lambda: open_store(postgres_url, busy_s=0.5, max_age_s=3600, max_bytes=2**30)
    )
    with psycopg.connect(postgres_url) as another:
        another.execute("LOCK TABLE responses")
        with pytest.raises(StoreUnavailable, match="another program holds its lock"):
            await store.add_response(new_response("resp_1"))
    await retry_until_in_time(lambda: store.add_response(new_response("resp_1")))
    await store.close()


async def test_tables_of_postgres_that_are_gone_are_a_typed_error(postgres_url: str) -> None:
    store = await open_store(postgres_url, max_age_s=3600, max_bytes=2**30)
    execute(postgres_url, "ALTER TABLE responses RENAME TO elsewhere")
    with pytest.raises(StoreUnavailable, match="its tables are not there"):
        await store.response("resp_1", "key")
    execute(postgres_url, "ALTER TABLE elsewhere RENAME TO responses")
    assert await store.response("resp_1", "key") is None
    await store.close()


@pytest.mark.parametrize("theirs", ["items (id text)", "schema_version (version int, at text)"])
async def test_foreign_tables_with_our_names_are_refused(postgres_url: str, theirs: str) -> None:
    execute(postgres_url, f"CREATE TABLE {theirs}")
    with pytest.raises(StoreOpenError, match=r"a table \w+ that Ouzel has not made"):
        await open_store(postgres_url, max_age_s=1.0, max_bytes=1)
    with psycopg.connect(postgres_url) as server:
        tables = server.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
    assert tables == (1,)
