"""Defines the tables of files: their records, and their contents in pieces."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    or_,
)

from ouzel.store.tables import Name, metadata, unix_now

files = Table(
    "files",
    metadata,
    # Counts the files in the order of their uploads. SQLite counts only in INTEGER columns.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("id", Name, nullable=False, unique=True),
    Column("key_id", Name),
    Column("filename", Name, nullable=False),
    Column("purpose", String(32), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),  # sum over the stored pieces
    Column("is_complete", Boolean, nullable=False),
    Column("is_hidden", Boolean, nullable=False),  # its pieces are being deleted
    Column("created_at", Float(53), nullable=False),
    Column("expires_at", Float(53)),
    Column("touched_at", Float(53), nullable=False),  # the time of the newest piece
    Index("files_by_key", "key_id", "number"),
)

file_pieces = Table(
    "file_pieces",
    metadata,
    Column("file_id", Name, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

# Parts of an upload. Each has the pieces of a file with its id, which is never complete.
file_parts = Table(
    "file_parts",
    metadata,
    Column("id", Name, primary_key=True),
    Column("upload_id", Name, nullable=False, index=True),
    Column("key_id", Name),
    Column("num_bytes", BigInteger, nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("file_id", Name),  # the file that has this part
    Column("position", Integer),  # the place of the part in its file
    Index("file_parts_by_file", "file_id", "position"),
)

# Whether clients see a file: its upload is complete, and it was not deleted and has not expired.
is_visible = (
    files.c.is_complete
    & files.c.is_hidden.is_(False)
    & or_(files.c.expires_at.is_(None), files.c.expires_at > unix_now())
)
