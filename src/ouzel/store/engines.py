"""The store's URL names a database: SQLite in a file, or Postgres."""

import os
import sqlite3
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from ouzel.errors import StoreOpenError
from ouzel.store.database import Database

_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_NUM_SQLITE_READERS = 2
_NUM_POSTGRES_CONNECTIONS = 4
# A server that vanishes without a word is noticed in seconds: the threads that wait for it are few.
_POSTGRES_OPTIONS = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 10, "keepalives_interval": 5}
_MAX_WAL_BYTES = 64 * 2**20


def database_of(url: str, *, busy_s: float) -> Database:
    """Connects to nothing yet. Raises StoreOpenError; its message never holds the URL, which may hold a password."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise StoreOpenError("the store's URL must be like sqlite:///PATH or postgresql://USER@HOST/NAME")
    if scheme == "sqlite":
        return _sqlite(rest, busy_s)
    if scheme in _POSTGRES_SCHEMES:
        return _postgres(url, busy_s)
    raise StoreOpenError(f"the store's URL must begin with sqlite:/// or postgresql://, given {scheme}://")


def _sqlite(rest: str, busy_s: float) -> Database:
    """All after sqlite:/// is the path, as it is: nothing in it is quoted."""
    name = rest.removeprefix("/")
    if name in ("", ":memory:") or name == rest:
        raise StoreOpenError("the store's URL must name a file: sqlite:///PATH")
    path = Path(name).expanduser()
    _make_file(path)
    engines = []
    for begin, num_connections in (("BEGIN", _NUM_SQLITE_READERS), ("BEGIN IMMEDIATE", 1)):
        engine = create_engine(
            URL.create("sqlite", database=str(path)),
            pool_size=num_connections,
            max_overflow=0,
            connect_args={"timeout": busy_s, "check_same_thread": False},
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", lambda connection, begin=begin: connection.exec_driver_sql(begin))
        engines.append(engine)
    return Database(*engines, num_readers=_NUM_SQLITE_READERS, num_writers=1, busy_s=busy_s)


def _make_file(path: Path) -> None:
    """Makes it readable for its owner alone: prompts are in it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreOpenError(f"the store's file cannot be made: {error}") from error


def _prepare_sqlite(connection: sqlite3.Connection, record: object) -> None:
    """auto_vacuum has an effect in an empty file only, before WAL writes to it, and needs the write lock to be set."""
    connection.isolation_level = None  # the driver begins nothing; the engine's "begin" does
    if connection.execute("PRAGMA page_count").fetchone() == (0,):
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=NORMAL")  # kill -9 loses nothing; a power cut may lose the last moments
    connection.execute(f"PRAGMA journal_size_limit={_MAX_WAL_BYTES}")


def _postgres(text: str, busy_s: float) -> Database:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreOpenError("the store's URL must be like postgresql://USER:PASSWORD@HOST:PORT/NAME") from None
    options = {name: value for name, value in _POSTGRES_OPTIONS.items() if name not in url.query}
    try:
        engine: Engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=_NUM_POSTGRES_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args=options,
        )
    except ImportError as error:
        raise StoreOpenError("Postgres needs a driver: pip install 'ouzel[postgres]'") from error
    readers = writers = _NUM_POSTGRES_CONNECTIONS // 2
    reader = engine.execution_options(isolation_level="REPEATABLE READ")
    return Database(reader, engine, num_readers=readers, num_writers=writers, busy_s=busy_s)
