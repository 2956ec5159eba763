"""Runs functions as database transactions in threads, and converts database faults.

1.  SQLite has one writer. Its transactions hold the write lock from the start, so the rows that it
    has read are still the same when it writes. Readers run beside it (WAL).
2.  Postgres has one small pool of connections for readers and writers.
3.  A read transaction sees one state of the store from start to end.
4.  A transaction that has begun runs to its end, even if the task that waits for it is cancelled.
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

from ouzel.store.errors import StoreUnavailable
from ouzel.store.faults import LOCKED, DatabaseUnusable, sqlstate, unusable
from ouzel.store.sqlite_file import SqliteFile, empty_log, vacuum

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
_TRY_AGAIN = {"40001", "40P01"}  # Postgres: serialization failure, deadlock
_MAX_TRIES = 5
_LOG_AGAIN_S = 60.0


class Database:
    """SQLAlchemy's engines of the store, and the threads that run their transactions.

    `reader` and `writer` may be the same engine. Only SQLite has a `file`.
    """

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
        """`busy_s` is the longest time that a transaction waits for its turn and its locks."""
        self.is_closed = False
        self._busy_s = busy_s
        self._reader = reader
        self._writer = writer
        self._file = file
        self._reading = ThreadPoolExecutor(num_readers, thread_name_prefix="store-read")
        self._writing = ThreadPoolExecutor(num_writers, thread_name_prefix="store-write")
        self._logged_at: dict[str, float] = {}  # log text -> time of the monotonic clock

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
        """Runs a transaction that frees space, also when the disk of SQLite is full."""
        work = partial(self._delete, lambda connection: function(connection, *args, **kwargs))
        return await self._run(self._writing, work)

    async def keep_schema(self, prepare: Callable[[Connection], None]) -> None:
        """Creates or upgrades the schema by calling `prepare` in a transaction."""
        await self.write(prepare)
        file = self._file
        if file is not None:
            await self._run(self._writing, lambda latest_s: file.has_schema())

    async def give_space_back(self) -> bool:
        """Cuts off unused pages of SQLite's file; returns whether there were any.

        Postgres reuses the space of deleted rows by itself.
        """
        if self._file is None:
            return False
        num_pages = await self._run(
            self._writing, lambda latest_s: _outside_of_transactions(self._writer, vacuum)
        )
        return num_pages > 0

    async def close(self) -> None:
        self.is_closed = True
        for executor in (self._reading, self._writing):
            await asyncio.to_thread(executor.shutdown)
        for engine in {self._reader, self._writer}:
            await asyncio.to_thread(engine.dispose)

    async def _run(self, executor: ThreadPoolExecutor, work: Callable[[float], T]) -> T:
        """Calls `work` in a thread; its argument is the latest time to wait for locks.

        The time is of the monotonic clock. Raises StoreUnavailable for a fault of the database.
        """
        if self.is_closed:
            raise StoreUnavailable(
                "the store is closed: the server is shutting down", retry_after_s=1.0
            )
        latest_s = time.monotonic() + self._busy_s

        def run_in_time() -> T:
            """Gives up work that has waited for its thread too long.

            If the database is locked, each work before this one has waited for the lock; the waits
            must not add up.
            """
            if time.monotonic() > latest_s:
                raise DatabaseUnusable(
                    LOCKED, "the transactions before this one waited for the lock too long"
                )
            return work(latest_s)

        try:
            return await asyncio.get_running_loop().run_in_executor(executor, run_in_time)
        except DatabaseUnusable as fault:
            self._log(str(fault))
            raise fault.for_clients() from fault

    def _log(self, details: str) -> None:
        """Logs a fault, at most once a minute, because every request may meet the same fault."""
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
            with suppress(DatabaseUnusable):  # the transaction may succeed without it
                _outside_of_transactions(self._writer, empty_log)
            result = _transact(self._writer, function, latest_s)
            with suppress(DatabaseUnusable):
                _outside_of_transactions(self._writer, _give_all_back)
        return result


def _transact(engine: Engine, function: Callable[[Connection], T], latest_s: float) -> T:
    """Runs one transaction, and again if Postgres aborted it because of a concurrent one."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return _transact_once(engine, function, latest_s)
        except DatabaseUnusable as fault:
            cause = fault.__cause__
            if not isinstance(cause, DBAPIError) or sqlstate(cause) not in _TRY_AGAIN:
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
    """Converts errors of the database to DatabaseUnusable, except for errors that show a bug."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        fault = unusable(error)
        if fault is None:
            raise
        raise fault from error
