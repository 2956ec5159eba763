"""Runs functions of a connection as transactions in threads, and gives faults of the database a type of ours.

SQLite has one writer, which begins its transactions with the write lock held, so that what it read is still true when
it writes; readers go on beside it (WAL). Postgres has one small pool for both. A reader sees one moment of the store
throughout. A transaction that has begun is carried through even if the task that waits for it is cancelled.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    IntegrityError,
    NotSupportedError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ouzel.errors import StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")
_OUR_BUGS = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
_TRY_AGAIN = {"40001", "40P01"}  # Postgres: serialization failure, deadlock
_MAX_TRIES = 5
_MAX_VACUUMED_PAGES = 1024  # at once: 4 MiB, as others wait
_MAX_FREE_PAGES = 256  # worth keeping


class Database:
    """Holds the engines and their threads; `reader` and `writer` may be one engine."""

    def __init__(self, reader: Engine, writer: Engine, *, num_readers: int, num_writers: int, busy_s: float) -> None:
        """A transaction waits `busy_s` for those before it."""
        self.is_closed = False
        self._busy_s = busy_s
        self._reader = reader
        self._writer = writer
        self._reading = ThreadPoolExecutor(num_readers, thread_name_prefix="store-read")
        self._writing = ThreadPoolExecutor(num_writers, thread_name_prefix="store-write")

    async def read(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._reading, lambda: _transact(self._reader, function, *args, **kwargs))

    async def write(self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(self._writing, lambda: _transact(self._writer, function, *args, **kwargs))

    async def give_space_back(self) -> bool:
        """Cuts off a part of SQLite's file that nothing needs, if there is one; Postgres fills such space again."""
        if self._writer.dialect.name != "sqlite":
            return False
        return await self._run(self._writing, lambda: _vacuum(self._writer)) > 0

    async def close(self) -> None:
        self.is_closed = True
        for executor in (self._reading, self._writing):
            await asyncio.to_thread(executor.shutdown)
        for engine in {self._reader, self._writer}:
            await asyncio.to_thread(engine.dispose)

    async def _run(self, executor: ThreadPoolExecutor, function: Callable[[], T]) -> T:
        if self.is_closed:
            raise StoreUnavailable("the store is closed: the server is shutting down", retry_after_s=1.0)
        loop = asyncio.get_running_loop()
        latest_s = loop.time() + self._busy_s

        def run_in_time() -> T:
            """While each waits in vain for a lock, those behind it must not wait as long again, one after the other."""
            if loop.time() > latest_s:
                raise StoreUnavailable("the store cannot be used now: it is busy", retry_after_s=1.0)
            return function()

        return await loop.run_in_executor(executor, run_in_time)


def _transact(
    engine: Engine, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Runs one transaction, and begins it anew where Postgres broke it off in favour of another's."""
    for num_tries in range(1, _MAX_TRIES + 1):
        try:
            with engine.begin() as connection:
                return function(connection, *args, **kwargs)
        except _OUR_BUGS:
            raise
        except (DBAPIError, PoolTimeout) as error:
            if num_tries == _MAX_TRIES or _sqlstate(error) not in _TRY_AGAIN:
                raise StoreUnavailable(f"the store cannot be used now: {reason(error)}", retry_after_s=1.0) from error
    raise AssertionError("the last try raises or returns")


def _vacuum(engine: Engine) -> int:
    """Cuts off some pages and says how many; a file that was made without auto_vacuum has none to cut off."""
    try:
        raw = engine.raw_connection()  # outside of a transaction, in which nothing would be freed
        try:
            cursor = raw.cursor()
            num_free: int = cursor.execute("PRAGMA freelist_count").fetchone()[0]
            if num_free <= _MAX_FREE_PAGES:
                return 0
            cursor.executescript(f"PRAGMA incremental_vacuum({_MAX_VACUUMED_PAGES})")  # execute() stops at one
            return num_free - int(cursor.execute("PRAGMA freelist_count").fetchone()[0])
        finally:
            raw.close()
    except (sqlite3.Error, DBAPIError, PoolTimeout) as error:
        raise StoreUnavailable(f"the store's file cannot be made smaller: {error}", retry_after_s=1.0) from error


def _sqlstate(error: SQLAlchemyError) -> str | None:
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None


def reason(error: SQLAlchemyError) -> str:
    """Returns what the database itself says, without the statement and its values."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return " ".join(text.split()) or type(error).__name__
