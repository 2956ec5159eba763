"""Defines the tables of stored chat completions, with their messages and labels."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, Table

from ouzel.store.tables import Name, metadata

chats = Table(
    "chats",
    metadata,
    # Counts the completions in the order of storing. SQLite counts only in columns of type INTEGER.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Name, nullable=False, unique=True),
    Column("key_id", Name),
    Column("model", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("metadata", LargeBinary, nullable=False),  # JSON
    Column("used_at", Float(53), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Index("chats_by_key", "key_id", "number"),
    Index("chats_by_use", "used_at", "size_bytes"),
)

chat_messages = Table(
    "chat_messages",
    metadata,
    Column("chat_id", Name, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("id", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

# The metadata again, one row for each label, so that lists can be filtered by it.
chat_labels = Table(
    "chat_labels",
    metadata,
    Column("chat_id", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("value", Name, nullable=False),
)
