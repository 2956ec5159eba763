"""Defines the tables of batches and of their lines."""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, String, Table

from ouzel.store.tables import Name, metadata

batches = Table(
    "batches",
    metadata,
    Column("id", Name, primary_key=True),
    Column("key_id", Name),
    Column("dialect", String(16), nullable=False),
    Column("endpoint", Name, nullable=False),
    Column("input_file_id", Name),
    Column("window_s", Integer, nullable=False),
    Column("metadata", LargeBinary),
    Column("output_expires_after_s", BigInteger),
    Column("status", String(16), nullable=False),
    # The server that validates the batch or writes its files. Lines have owners of their own.
    Column("owner", String(64)),
    Column("model", Name),
    Column("num_lines", Integer, nullable=False),
    Column("num_succeeded", Integer, nullable=False),
    Column("num_errored", Integer, nullable=False),
    Column("num_cancelled", Integer, nullable=False),
    Column("num_expired", Integer, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("reasoning_tokens", BigInteger, nullable=False),
    Column("errors", LargeBinary),
    Column("output_file_id", Name),
    Column("error_file_id", Name),
    Column("created_at", Float(53), nullable=False),
    Column("in_progress_at", Float(53)),
    Column("expires_at", Float(53), nullable=False),
    Column("finalizing_at", Float(53)),
    Column("completed_at", Float(53)),
    Column("failed_at", Float(53)),
    Column("expired_at", Float(53)),
    Column("cancelling_at", Float(53)),
    Column("cancelled_at", Float(53)),
    Index("batches_by_status", "status", "created_at"),
    Index("batches_by_key", "key_id", "created_at"),
)

# A line without an end is open; an open line with an owner runs there.
batch_lines = Table(
    "batch_lines",
    metadata,
    Column("batch_id", Name, primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("key_id", Name),
    Column("custom_id", Name, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("owner", String(64)),
    Column("end", String(16)),
    Column("result", LargeBinary),
    Index("batch_lines_by_end", "batch_id", "end", "position"),
)
