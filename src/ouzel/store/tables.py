"""This is the schema. Times are unix seconds by the database's clock, so that servers on several machines agree."""

from typing import Any  # what SQLAlchemy's hooks are typed with

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
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
    """A client may have chosen such text: what Postgres cannot hold, NUL and half characters, is replaced."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()


class unix_now(FunctionElement[float]):
    """Gives the seconds since 1970 by the database's clock."""

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
    Column(
        "num_conversation_items", BigInteger, nullable=False
    ),  # positions below it are the response's history
    Column("body", LargeBinary, nullable=False),
    Column("request", LargeBinary),
    Column("num_items", Integer, nullable=False),
    Column("num_events", Integer, nullable=False),
    Column("owner", String(64)),  # the server that runs it
    Column("created_at", Float(53), nullable=False),
    Column("used_at", Float(53), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),  # of all that deleting it frees
    Index("responses_by_use", "used_at", "size_bytes"),
    Index(
        "responses_by_status", "status", "created_at"
    ),  # a partial index would import the dialects of all databases
)

events = Table(  # each row a batch: those numbered first_event to before end_event
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

# An item of a response that was made in a conversation is there twice, once for each: so each of the two can be
# deleted, and counted, without asking after the other.
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
