"""Defines the schema of the store, its version, and the upgrades of older versions.

Times are unix seconds of the database's clock, so that servers on several machines agree.
"""

from collections.abc import Callable
from typing import Any  # the type of arguments of SQLAlchemy's hooks

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import TypeDecorator

from ouzel.store.records import Status

RUNNING = (Status.QUEUED.value, Status.IN_PROGRESS.value)


class Name(TypeDecorator[str]):
    """A column of texts that may come from clients; NUL and lone surrogates are replaced.

    Postgres cannot store these characters.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else make_storable(value)


def make_storable(text: str) -> str:
    """Returns the text as a column of type `Name` stores it."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


class unix_now(FunctionElement[float]):
    """Returns the seconds since 1970 by the database's clock, in an SQL statement."""

    type = Float()
    inherit_cache = True


@compiles(unix_now, "sqlite")
def _unix_now_in_sqlite(element: unix_now, compiler: Any, **options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(unix_now, "postgresql")
def _unix_now_in_postgres(element: unix_now, compiler: Any, **options: Any) -> str:
    return "extract(epoch from clock_timestamp())::float8"


metadata = MetaData()

schema_version = Table("schema_version", metadata, Column("version", Integer, nullable=False))

servers = Table(
    "servers",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("expires_at", Float(53), nullable=False),  # the lease; renewed by beat()
)

responses = Table(
    "responses",
    metadata,
    Column("id", Name, primary_key=True),
    Column("key_id", Name),
    Column("model", Name, nullable=False),
    Column("status", String(16), nullable=False),
    Column("is_background", Boolean, nullable=False),
    Column("previous_response_id", Name),
    Column("conversation_id", Name),
    # Items of the conversation at lower positions are the history of the response.
    Column("num_conversation_items", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("request", LargeBinary),
    Column("num_items", Integer, nullable=False),
    Column("num_events", Integer, nullable=False),
    Column("owner", String(64)),  # the server that runs it
    Column("created_at", Float(53), nullable=False),
    Column("used_at", Float(53), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),  # bytes that a deletion frees
    Index("responses_by_use", "used_at", "size_bytes"),
    # A partial index would be smaller, but would import the dialects of all databases.
    Index("responses_by_status", "status", "created_at"),
)

# Each row is a batch with the events from number first_event up to the one before end_event.
events = Table(
    "events",
    metadata,
    Column("response_id", Name, primary_key=True),
    Column("first_event", Integer, primary_key=True),
    Column("end_event", Integer, nullable=False),
    Column("batch", LargeBinary, nullable=False),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Name, primary_key=True),
    Column("key_id", Name),
    Column("metadata", LargeBinary, nullable=False),  # JSON
    Column("locked_by", Name),  # the response that is being made in it
    Column("next_position", BigInteger, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("used_at", Float(53), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Index("conversations_by_use", "used_at", "size_bytes"),
)

# An item of a response that was made in a conversation has two rows, one for the response and one
# for the conversation. Each of the two can therefore be deleted and counted without the other.
items = Table(
    "items",
    metadata,
    Column("owner_id", Name, primary_key=True),  # a response or a conversation
    Column("position", BigInteger, primary_key=True),
    Column("is_output", Boolean, nullable=False),
    Column("id", Name, nullable=False, index=True),  # not unique: clients send items back
    Column("key_id", Name),
    Column("body", LargeBinary, nullable=False),
)

# A database that lacks one of these tables is not a store. A table that an upgrade adds does not
# belong here: stores of older versions lack it.
TABLES_OF_ALL_VERSIONS = frozenset(
    {"schema_version", "servers", "responses", "events", "conversations", "items"}
)


def _create_missing_tables(connection: Connection) -> None:
    metadata.create_all(connection)


# Each change of the tables raises the version and adds an upgrade.
VERSION = 2
Upgrade = Callable[[Connection], None]
UPGRADES: dict[int, Upgrade] = {
    # number of a version: the function that upgrades its tables to the next version
    1: _create_missing_tables,
}
