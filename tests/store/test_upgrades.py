"""A store of an older version is upgraded when a server opens it: whole, once, or not at all."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import Connection, text

from ouzel.store import tables
from tests.store.conftest import OpenStore
from tests.store.making import new_response

Upgrade = Callable[[Connection], None]


def add_column(name: str) -> Upgrade:
    """Returns an upgrade that fails if the table has the column already."""

    def upgrade(connection: Connection) -> None:
        connection.execute(text(f"ALTER TABLE responses ADD COLUMN {name} INTEGER"))

    return upgrade


def rename_column(before: str, after: str) -> Upgrade:
    def upgrade(connection: Connection) -> None:
        connection.execute(text(f"ALTER TABLE responses RENAME COLUMN {before} TO {after}"))

    return upgrade


def fail(connection: Connection) -> None:
    raise ArithmeticError("this upgrade fails")


@pytest.fixture
def set_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Mapping[int, Upgrade]], None]:
    """Returns a function that replaces the program's version of the schema and the upgrades."""

    def replace(version: int, upgrades: Mapping[int, Upgrade]) -> None:
        monkeypatch.setattr(tables, "VERSION", version)
        monkeypatch.setattr(tables, "UPGRADES", upgrades)

    return replace


SetVersion = Callable[[int, Mapping[int, Upgrade]], None]


def read_row(url: str, statement: str) -> tuple[object, ...]:
    """Returns the only row of a query."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            [row] = connection.execute(statement).fetchall()
    else:
        with psycopg.connect(url) as server:
            [row] = server.execute(statement.encode()).fetchall()
    return tuple(row)


def stored_version(url: str) -> object:
    return read_row(url, "SELECT version FROM schema_version")[0]


async def test_upgrades_run_in_order_and_keep_all_rows(
    store_url: str, opened: OpenStore, set_version: SetVersion
) -> None:
    old = await opened()
    await old.add_response(new_response("resp_1"))
    before = await old.response("resp_1", "key")
    await old.close()
    set_version(3, {1: add_column("num_images"), 2: rename_column("num_images", "num_pictures")})

    store = await opened()
    assert await store.response("resp_1", "key") == before
    assert stored_version(store_url) == 3
    assert read_row(store_url, "SELECT num_pictures FROM responses") == (None,)


async def test_servers_that_start_together_upgrade_once(
    store_url: str, opened: OpenStore, set_version: SetVersion
) -> None:
    await (await opened()).close()
    set_version(2, {1: add_column("num_pictures")})

    await asyncio.gather(*(opened() for _ in range(4)))
    assert stored_version(store_url) == 2


async def test_an_upgrade_that_fails_leaves_the_store_of_the_old_version(
    store_url: str, opened: OpenStore, set_version: SetVersion
) -> None:
    old = await opened()
    await old.add_response(new_response("resp_1"))
    await old.close()
    set_version(3, {1: add_column("num_pictures"), 2: fail})
    with pytest.raises(ArithmeticError, match="this upgrade fails"):
        await opened()

    assert stored_version(store_url) == 1
    set_version(2, {1: add_column("num_pictures")})
    assert await (await opened()).response("resp_1", "key") is not None
