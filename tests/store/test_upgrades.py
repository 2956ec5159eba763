"""A store of an older version is upgraded when a server opens it: whole, once, or not at all."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest
from sqlalchemy import Connection, text

from ouzel.store import tables
from tests.store.conftest import OpenStore
from tests.store.making import new_response

FIRST = tables.VERSION
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


AddUpgrades = Callable[..., None]


@pytest.fixture
def add_upgrades(monkeypatch: pytest.MonkeyPatch) -> AddUpgrades:
    """Returns a function that makes the program's schema newer by a version for each upgrade."""

    def replace(*upgrades: Upgrade) -> None:
        monkeypatch.setattr(tables, "VERSION", FIRST + len(upgrades))
        monkeypatch.setattr(tables, "UPGRADES", dict(enumerate(upgrades, FIRST)))

    return replace


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
    store_url: str, opened: OpenStore, add_upgrades: AddUpgrades
) -> None:
    old = await opened()
    await old.add_response(new_response("resp_1"))
    before = await old.response("resp_1", "key")
    await old.close()
    add_upgrades(add_column("num_images"), rename_column("num_images", "num_pictures"))

    store = await opened()
    assert await store.response("resp_1", "key") == before
    assert stored_version(store_url) == FIRST + 2
    assert read_row(store_url, "SELECT num_pictures FROM responses") == (None,)


async def test_servers_that_start_together_upgrade_once(
    store_url: str, opened: OpenStore, add_upgrades: AddUpgrades
) -> None:
    await (await opened()).close()
    add_upgrades(add_column("num_pictures"))

    await asyncio.gather(*(opened() for _ in range(4)))
    assert stored_version(store_url) == FIRST + 1


async def test_an_upgrade_that_fails_leaves_the_store_of_the_old_version(
    store_url: str, opened: OpenStore, add_upgrades: AddUpgrades
) -> None:
    old = await opened()
    await old.add_response(new_response("resp_1"))
    await old.close()
    add_upgrades(add_column("num_pictures"), fail)
    with pytest.raises(ArithmeticError, match="this upgrade fails"):
        await opened()

    assert stored_version(store_url) == FIRST
    add_upgrades(add_column("num_pictures"))
    assert await (await opened()).response("resp_1", "key") is not None
