"""Defines the tables of uploads in parts. The bytes of parts are hidden files."""

from sqlalchemy import BigInteger, Column, Float, Index, String, Table

from ouzel.store.tables import Name, metadata

uploads = Table(
    "uploads",
    metadata,
    Column("id", Name, primary_key=True),
    Column("key_id", Name),
    Column("filename", Name, nullable=False),
    Column("purpose", String(32), nullable=False),
    Column("num_bytes", BigInteger, nullable=False),  # the client has announced them
    Column("file_expires_after_s", Float(53)),
    Column("status", String(16), nullable=False),
    Column("created_at", Float(53), nullable=False),
    Column("expires_at", Float(53), nullable=False),
    Index("uploads_by_status", "status", "expires_at"),
)
