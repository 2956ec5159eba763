"""A store whose server a test can stop between any two transactions, as `kill -9` does.

A killed server changes the store no more. Its transactions therefore wait for ever once it is
frozen, and `bury` ends them without any clean-up that the store could see.
"""

import asyncio
import secrets
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # functions of transactions

import psycopg

from ouzel.store import leases
from ouzel.store.base import Store
from ouzel.store.database import Database
from ouzel.store.engines import open_database
from ouzel.store.schema import prepare_schema
from ouzel.store.sql_store import SqlStore
from ouzel.store.vector_stores.room import SizeLimits
from tests.postgres import PostgresServer

_DAY_S = 86400.0


@dataclass(frozen=True)
class Moment:
    """A moment before or after the commit of a transaction, which has a number from 1 on."""

    number: int
    is_done: bool


class WatchedDatabase:
    """Counts the transactions of a server, and calls `at_moment` before and after each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._is_buried = False
        self._running: set[asyncio.Future[Any]] = set()  # transactions that have begun
        self.is_closed = False
        self.num_transactions = 0
        self.moments: list[Moment] = []  # the moments around all transactions that write
        self.at_moment: Callable[[Moment], Awaitable[None]] | None = None

    def freeze(self) -> None:
        """Keeps the server from any further step outside of itself.

        A transaction that has begun comes to its end.
        """
        self._may_run.clear()

    async def settle(self) -> None:
        """Waits until no transaction of a frozen server runs any more."""
        while self._running:
            await asyncio.wait(self._running)

    def thaw(self) -> None:
        self._may_run.set()

    @property
    def is_frozen(self) -> bool:
        return not self._may_run.is_set()

    async def go_on(self) -> None:
        """Waits while the server is frozen."""
        await self._may_run.wait()
        if self._is_buried:
            raise asyncio.CancelledError

    async def bury(self) -> None:
        """Ends the waiting transactions of a frozen server; it gets none any more."""
        assert self.is_frozen
        self._is_buried = True
        self.thaw()
        await self.close()

    async def read(self, *args: Any, **kwargs: Any) -> Any:
        return await self._run(self._database.read, args, kwargs)

    async def write(self, *args: Any, **kwargs: Any) -> Any:
        return await self._run(self._database.write, args, kwargs)

    async def delete(self, *args: Any, **kwargs: Any) -> Any:
        return await self._run(self._database.delete, args, kwargs)

    async def keep_schema(self, prepare: Any) -> None:
        await self._database.keep_schema(prepare)

    async def give_space_back(self) -> bool:
        return await self._database.give_space_back()

    async def close(self) -> None:
        self.is_closed = True
        await self._database.close()

    async def _run(
        self, transact: Callable[..., Awaitable[Any]], args: Any, kwargs: dict[str, Any]
    ) -> Any:
        await self.go_on()
        self.num_transactions += 1
        number = self.num_transactions
        if transact != self._database.read:
            self.moments += [Moment(number, False), Moment(number, True)]
        await self._tell(Moment(number, False))
        running = asyncio.ensure_future(transact(*args, **kwargs))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        result = await running
        await self._tell(Moment(number, True))
        return result

    async def _tell(self, moment: Moment) -> None:
        if self.at_moment is not None:
            await self.at_moment(moment)
        await self.go_on()


@dataclass(frozen=True)
class WatchedStore:
    """The store of one server, whose lease ends only by `end_lease`."""

    store: Store
    server_id: str
    database: WatchedDatabase

    async def end_lease(self, dead: "WatchedStore") -> None:
        """Makes another server count as dead, as if the time of its lease were over."""
        await self.database.write(leases.end, dead.server_id)


def open_watched(url: str) -> WatchedStore:
    """Opens a store whose schema exists."""
    database = WatchedDatabase(open_database(url, busy_s=600.0))
    as_database: Database = database  # type: ignore[assignment]
    store = SqlStore(
        as_database,
        lease_s=_DAY_S,
        max_age_s=_DAY_S,
        max_bytes=2**30,
        max_file_bytes=2**30,
        vector_limits=SizeLimits(max_bytes=2**30, max_bytes_per_key=2**30),
    )
    return WatchedStore(store, store.server_id, database)


class StoreCopies:
    """Copies a store that a test has prepared, so that each case begins with the same state."""

    def __init__(
        self, directory: Path, postgres: PostgresServer | None, *, is_thorough: bool
    ) -> None:
        """`postgres` is None for SQLite; `is_thorough` asks for all moments."""
        self.is_postgres = postgres is not None
        self.is_thorough = is_thorough
        self._directory = directory
        self._postgres = postgres
        self._source = self._new_url()

    async def prepare(self, fill: Callable[[Store], Awaitable[None]]) -> None:
        """Creates the schema of the original, and calls `fill`."""
        original = open_watched(self._source)
        await original.database.keep_schema(prepare_schema)
        await fill(original.store)
        await original.database.close()

    def copy(self) -> str:
        """Returns the URL of a new copy."""
        if self._postgres is None:
            url = self._new_url()
            shutil.copy(_path(self._source), _path(url))
            return url
        source = self._source.partition("?")[0].rpartition("/")[2]
        name = f"copy_{secrets.token_hex(8)}"
        admin = self._postgres.url("postgres")
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {source}".encode())
        return self._postgres.url(name)

    def remove(self, url: str) -> None:
        if self._postgres is None:
            for path in self._directory.glob(f"{_path(url).name}*"):
                path.unlink()
            return
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(self._postgres.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def _new_url(self) -> str:
        if self._postgres is None:
            return f"sqlite:///{self._directory}/store_{secrets.token_hex(8)}.sqlite3"
        return self._postgres.new_database()


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))
