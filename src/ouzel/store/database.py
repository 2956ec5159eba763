"""Runs functions of a connection as transactions in threads, and gives faults of the database a type of ours.

SQLite has one writer, which begins its transactions with the write lock held, so that what it read is still true when
it writes; readers go on beside it (WAL). Postgres has one small pool for both. A reader sees one moment of the store
throughout. A transaction that has begun is carried through even if the task that waits for it is cancelled.
"""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ouzel.errors import StoreUnavailable
from ouzel.store.faults import LOCKED, DatabaseUnusable, sqlstate, unusable
from ouzel.store.sqlite_file import SqliteFile, empty_log, vacuum

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
_TRY_AGAIN = {"40001", "40P01"}  # Postgres: serialization failure, deadlock
_MAX_TRIES = 5
_LOG_AGAIN_S = 60.0


class Database:
    """Holds the engines and their threads; `reader` and `writer` may be one engine, and only SQLite has a file."""

    def __init__(
        self,
        reader: Engine,
        writer: Engine,
        *,
        num_readers: int,
        num_writers: int,
        busy_s: float,
        file: SqliteFile | None = None,
    ) -> None:
        """A transaction waits `busy_s` for those before it, of this program and of others."""
        self.is_closed = False
        self._busy_s = busy_s
        self._reader = reader
        self._writer = writer
        self._file = file
        self._reading = ThreadPoolExecutor(num_readers, thread_name_prefix="store-read")
        self._writing = ThreadPoolExecutor(num_writers, thread_name_prefix="store-write")
        self._logged_at: dict[str, float] = {}  # by what was logged

    async def read(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        work = partial(
            _transact, self._reader, lambda connection: function(connection, *args, **kwargs)
        )
        return await self._run(self._reading, work)

    async def write(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        work = partial(
            _transact, self._writer, lambda connection: function(connection, *args, **kwargs)
        )
        return await self._run(self._writing, work)

    async def delete(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Writes what makes room, also where there is none left."""
        work = partial(self._delete, lambda connection: function(connection, *args, **kwargs))
        return await self._run(self._writing, work)

    async def keep_schema(self, prepare: Callable[[Connection], None]) -> None:
        """Makes the schema, or brings it up to date."""
        await self.write(prepare)
        if self._file is not None:
            await self._run(
                self._writing, lambda _: None if self._file is None else self._file.has_schema()
            )

    async def give_space_back(self) -> bool:
        """Cuts off a part of SQLite's file that nothing needs, if there is one; Postgres fills such space again."""
        if self._file is None:
            return False
        return (
            await self._run(
                self._writing, lambda latest_s: _outside_of_transactions(self._writer, vacuum)
            )
            > 0
        )

    async def close(self) -> None:
        self.is_closed = True
        for executor in (self._reading, self._writing):
            await asyncio.to_thread(executor.shutdown)
        for engine in {self._reader, self._writer}:
            await asyncio.to_thread(engine.dispose)

    async def _run(self, executor: ThreadPoolExecutor, work: Callable[[float], T]) -> T:
        """Calls `work` with the time by the monotonic clock until which it may wait for locks."""
        if self.is_closed:
            raise StoreUnavailable(
                "the store is closed: the server is shutting down", retry_after_s=1.0
            )
        latest_s = time.monotonic() + self._busy_s

        def run_in_time() -> T:
            """While each waits in vain for a lock, those behind it must not wait as long again, one after the other."""
            if time.monotonic() > latest_s:
                raise DatabaseUnusable(LOCKED, "others have waited for its lock all the time")
            return work(latest_s)

        try:
            return await asyncio.get_running_loop().run_in_executor(executor, run_in_time)
        except DatabaseUnusable as fault:
            self._log(str(fault))
            raise fault.for_clients() from fault

    def _log(self, details: str) -> None:
        """Logs once a minute what may happen to every request."""
        now_s = time.monotonic()
        if now_s - self._logged_at.get(details, -_LOG_AGAIN_S) >= _LOG_AGAIN_S:
            self._logged_at = {
                text: at_s for text, at_s in self._logged_at.items() if now_s - at_s < _LOG_AGAIN_S
            }
            self._logged_at[details] = now_s
            logger.error("the store cannot be used now: %s", details)

    def _delete(self, function: Callable[[Connection], T], latest_s: float) -> T:
        try:
            return _transact(self._writer, function, latest_s)
        except DatabaseUnusable as fault:
            if not fault.is_full or self._file is None:
                raise
        with self._file.reserve.released():
            with suppress(DatabaseUnusable):  # the log may still take what it could not before
                _outside_of_transactions(self._writer, empty_log)
            result = _transact(self._writer, function, latest_s)
            with suppress(DatabaseUnusable):
                _outside_of_transactions(self._writer, _give_all_back)
        return result


def _transact(engine: Engine, function: Callable[[Connection], T], latest_s: float) -> T:
    """Runs one transaction, and begins it anew where Postgres broke it off in favour of another's."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return _transact_once(engine, function, latest_s)
        except DatabaseUnusable as fault:
            if (
                not isinstance(fault.__cause__, DBAPIError)
                or sqlstate(fault.__cause__) not in _TRY_AGAIN
            ):
                raise
    return _transact_once(engine, function, latest_s)


def _transact_once(engine: Engine, function: Callable[[Connection], T], latest_s: float) -> T:
    with _faults_named(), engine.connect() as connection:
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            left_ms = max(1, round((latest_s - time.monotonic()) * 1000))
            raw.execute(f"PRAGMA busy_timeout={left_ms}")
        with connection.begin():
            return function(connection)


def _outside_of_transactions(engine: Engine, work: Callable[[sqlite3.Connection], T]) -> T:
    with _faults_named():
        pooled = engine.raw_connection()
        try:
            assert isinstance(pooled.driver_connection, sqlite3.Connection)
            return work(pooled.driver_connection)
        finally:
            pooled.close()


def _give_all_back(connection: sqlite3.Connection) -> None:
    while vacuum(connection):
        pass
    empty_log(connection)


@contextmanager
def _faults_named() -> Iterator[None]:
    """Turns what is not a bug of ours into DatabaseUnusable."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        fault = unusable(error)
        if fault is None:
            raise
        raise fault from error
