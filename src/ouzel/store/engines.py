"""Makes the database that the URL of the store names: SQLite in a file, or Postgres."""

from pathlib import Path
from typing import Any  # the type of arguments of SQLAlchemy's hooks

from sqlalchemy import Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError

from ouzel.extras import install_hint
from ouzel.store.database import Database
from ouzel.store.errors import StoreOpenError
from ouzel.store.sqlite_file import SqliteFile, StoreConnection

_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_NUM_SQLITE_READERS = 2
_NUM_POSTGRES_CONNECTIONS = 4
# A server that vanishes is noticed within seconds: only few threads can wait for the server.
_POSTGRES_OPTIONS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
}


def open_database(url: str, *, busy_s: float) -> Database:
    """Makes the database object; the first transaction connects.

    Raises StoreOpenError. Its message never has the URL, because the URL may have a password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise StoreOpenError(
            "the store's URL must be like sqlite:///PATH or postgresql://USER@HOST/NAME"
        )
    if scheme == "sqlite":
        return _sqlite(rest, busy_s)
    if scheme in _POSTGRES_SCHEMES:
        return _postgres(url, busy_s)
    raise StoreOpenError(
        f"the store's URL must begin with sqlite:/// or postgresql://, given {scheme}://"
    )


def _sqlite(rest: str, busy_s: float) -> Database:
    """Makes a SQLite database; the text after sqlite:/// is the path, without URL quoting."""
    name = rest.removeprefix("/")
    if name in ("", ":memory:") or name == rest:
        raise StoreOpenError("the store's URL must name a file: sqlite:///PATH")
    file = SqliteFile(Path(name).expanduser(), busy_s=busy_s)
    engines = [
        _sqlite_engine(file, begin, num_connections)
        for begin, num_connections in (("BEGIN", _NUM_SQLITE_READERS), ("BEGIN IMMEDIATE", 1))
    ]
    return Database(
        *engines, num_readers=_NUM_SQLITE_READERS, num_writers=1, busy_s=busy_s, file=file
    )


def _sqlite_engine(file: SqliteFile, begin: str, num_connections: int) -> Engine:
    def check_file(connection: StoreConnection, record: object, proxy: object) -> None:
        if not file.is_open_in(connection):
            raise DisconnectionError  # the pool then makes a new connection

    engine = create_engine(
        "sqlite://",
        creator=file.connect,
        poolclass=QueuePool,
        pool_size=num_connections,
        max_overflow=0,
    )
    event.listen(engine, "checkout", check_file)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _postgres(text: str, busy_s: float) -> Database:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreOpenError(
            "the store's URL must be like postgresql://USER:PASSWORD@HOST:PORT/NAME"
        ) from None
    options = {name: value for name, value in _POSTGRES_OPTIONS.items() if name not in url.query}

    def limit_waiting(connection: Any, record: object) -> None:
        connection.execute(f"SET lock_timeout = {round(busy_s * 1000)}")
        connection.commit()

    try:
        engine: Engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_size=_NUM_POSTGRES_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args=options,
        )
    except ImportError as error:
        raise StoreOpenError(
            f"Postgres needs the extra postgres: {install_hint('postgres')}"
        ) from error
    event.listen(engine, "connect", limit_waiting)
    readers = writers = _NUM_POSTGRES_CONNECTIONS // 2
    reader = engine.execution_options(isolation_level="REPEATABLE READ")
    return Database(reader, engine, num_readers=readers, num_writers=writers, busy_s=busy_s)
