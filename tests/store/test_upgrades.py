"""A store of an older version is upgraded at the start, in one transaction and exactly once."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from functools import partial

import pytest
from sqlalchemy import Column, Connection, Table, Text, inspect, text

from ouzel.store.database import Database
from ouzel.store.engines import open_database
from ouzel.store.errors import StoreOpenError
from ouzel.store.schema import prepare_schema
from ouzel.store.tables import TABLES_OF_ALL_VERSIONS, VERSION, Upgrade, metadata
from tests.store.conftest import OpenStore
from tests.store.making import new_response
from tests.store.version_1 import make_store_of_version_1


@pytest.fixture
async def old_store(store_url: str) -> AsyncIterator[Database]:
    """Makes a database with the schema of version 1 and one response in it."""
    database = open_database(store_url, busy_s=60.0)
    await database.keep_schema(make_store_of_version_1)
    yield database
    await database.close()


# the tables that the versions after 1 have added
NEWER_TABLES = [
    table for table in metadata.sorted_tables if table.name not in TABLES_OF_ALL_VERSIONS
]


async def upgrade(database: Database, *upgrades: Upgrade) -> None:
    """Starts a server whose newest version is behind the given upgrades.

    The first of them also adds the tables that this server has and version 1 lacks.
    """

    def upgrade_first(connection: Connection) -> None:
        metadata.create_all(connection, NEWER_TABLES)
        upgrades[0](connection)

    steps = dict(enumerate([upgrade_first, *upgrades[1:]], start=1))
    await database.keep_schema(partial(prepare_schema, version=1 + len(steps), upgrades=steps))


def add_column(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE responses ADD COLUMN num_pictures INTEGER"))


def fill_column(connection: Connection) -> None:
    connection.execute(text("UPDATE responses SET num_pictures = 7"))


def fail(connection: Connection) -> None:
    raise StoreOpenError("this upgrade fails")


@pytest.fixture
def new_table() -> Iterator[Table]:
    """Adds a table to the schema of this server; the table is not in version 1."""
    table = Table("pictures", metadata, Column("id", Text, primary_key=True))
    yield table
    metadata.remove(table)


def read_columns(connection: Connection) -> dict[str, list[tuple[str, str, bool]]]:
    """Returns the name, the type and the nullability of the columns of each table."""
    inspector = inspect(connection)
    return {
        table: sorted(
            (column["name"], str(column["type"]), column["nullable"])
            for column in inspector.get_columns(table)
        )
        for table in inspector.get_table_names()
    }


def read_indexes(connection: Connection) -> dict[str, list[tuple[str | None, list[str | None]]]]:
    inspector = inspect(connection)
    return {
        table: sorted(
            ((index["name"], index["column_names"]) for index in inspector.get_indexes(table)),
            key=str,
        )
        for table in inspector.get_table_names()
    }


def read_version(connection: Connection) -> int:
    version: int = connection.execute(text("SELECT version FROM schema_version")).scalar_one()
    return version


def read_num_pictures(connection: Connection) -> int | None:
    """Returns the value of the new column in the row that the old version wrote."""
    number: int | None = connection.execute(text("SELECT num_pictures FROM responses")).scalar_one()
    return number


async def test_a_server_reads_and_writes_a_store_of_version_1(
    old_store: Database, opened: OpenStore
) -> None:
    store = await opened()
    old = await store.response("resp_old", "key")
    assert old is not None
    assert (old.body, old.is_background) == (b"{}", False)
    await store.add_response(new_response("resp_1", asked=["a"], previous="resp_old"))
    assert await store.response("resp_1", "key") is not None
    assert await old_store.read(read_version) == VERSION


async def test_an_upgraded_store_has_the_schema_of_a_new_store(
    old_store: Database, opened: OpenStore, request: pytest.FixtureRequest, store_url: str
) -> None:
    await opened()
    if store_url.startswith("sqlite"):
        url = store_url.replace("responses.sqlite3", "new.sqlite3")
    else:
        url = request.getfixturevalue("postgres_server").new_database()
    await opened(url=url)
    new_store = open_database(url, busy_s=60.0)
    new_columns = await new_store.read(read_columns)
    new_indexes = await new_store.read(read_indexes)
    await new_store.close()
    assert await old_store.read(read_columns) == new_columns
    assert await old_store.read(read_indexes) == new_indexes


async def test_upgrades_run_in_order_and_keep_the_rows(old_store: Database) -> None:
    await upgrade(old_store, add_column, fill_column)
    assert await old_store.read(read_version) == 3
    assert await old_store.read(read_num_pictures) == 7


async def test_an_old_row_has_no_value_in_a_new_column(old_store: Database) -> None:
    await upgrade(old_store, add_column)
    assert await old_store.read(read_num_pictures) is None


async def test_an_upgrade_runs_once_if_servers_start_together(
    old_store: Database, store_url: str
) -> None:
    servers = [open_database(store_url, busy_s=60.0) for _ in range(3)]
    await asyncio.gather(*(upgrade(server, add_column) for server in servers))
    assert await old_store.read(read_version) == 2
    for server in servers:
        await server.close()


async def test_an_upgrade_that_fails_leaves_the_store_as_it_was(
    old_store: Database, opened: OpenStore
) -> None:
    before = await old_store.read(read_columns)
    with pytest.raises(StoreOpenError, match="this upgrade fails"):
        await upgrade(old_store, add_column, fail)
    assert await old_store.read(read_version) == 1
    assert await old_store.read(read_columns) == before
    assert await (await opened()).response("resp_old", "key") is not None


async def test_an_older_server_refuses_the_upgraded_store(
    old_store: Database, opened: OpenStore
) -> None:
    await upgrade(old_store, add_column)
    message = (
        "^the store was made by a newer Ouzel: its schema has version 2, this one knows up to 1$"
    )
    with pytest.raises(StoreOpenError, match=message):
        await old_store.keep_schema(partial(prepare_schema, version=1, upgrades={}))
    assert await old_store.read(read_num_pictures) is None


async def test_an_upgrade_may_add_a_table(old_store: Database, new_table: Table) -> None:
    await upgrade(old_store, new_table.create)
    assert new_table.name in await old_store.read(read_columns)
    await upgrade(old_store, new_table.create)  # the next start of the same server


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
async def test_an_upgrade_may_add_a_table_to_a_file_without_an_application_id(
    old_store: Database, new_table: Table, store_url: str
) -> None:
    with closing(sqlite3.connect(store_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("PRAGMA application_id = 0")
    server = open_database(store_url, busy_s=60.0)
    await upgrade(server, new_table.create)
    assert new_table.name in await server.read(read_columns)
    await server.close()


async def test_a_store_that_lacks_a_table_of_its_version_is_refused(
    old_store: Database, new_table: Table
) -> None:
    await upgrade(old_store, new_table.create)
    await old_store.write(new_table.drop)
    with pytest.raises(StoreOpenError, match="has a table schema_version that Ouzel has not made"):
        await upgrade(old_store, new_table.create)
