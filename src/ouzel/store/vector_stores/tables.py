"""Defines the tables of vector stores: their files, the chunks and vectors of files, batches.

The index of words is not a table of SQLAlchemy; see `word_index.py`.
"""

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
    UniqueConstraint,
)

from ouzel.store.tables import Name, metadata

# SQLite counts only in INTEGER columns.
_Counter = BigInteger().with_variant(Integer, "sqlite")

vector_stores = Table(
    "vector_stores",
    metadata,
    Column("number", _Counter, primary_key=True),
    Column("id", Name, nullable=False, unique=True),
    Column("key_id", Name),
    Column("name", Name, nullable=False),
    Column("description", Name),
    Column("metadata", LargeBinary, nullable=False),  # JSON
    Column("model", Name, nullable=False),  # the model that makes its vectors
    Column("expires_after_days", Integer),
    Column("created_at", Float(53), nullable=False),
    Column("last_active_at", Float(53), nullable=False),
    Index("vector_stores_by_key", "key_id", "number"),
)

vector_store_files = Table(
    "vector_store_files",
    metadata,
    # A file that is added again has another number, so that its old chunks are never found.
    Column("number", _Counter, primary_key=True),
    Column("store_id", Name, nullable=False),
    Column("file_id", Name, nullable=False),
    Column("key_id", Name),
    Column("filename", Name, nullable=False),
    Column("batch_id", Name, index=True),
    Column("status", String(16), nullable=False),
    Column("attributes", LargeBinary, nullable=False),  # JSON
    Column("strategy", LargeBinary, nullable=False),  # JSON
    Column("error_code", String(32)),
    Column("error_message", Name),
    Column("usage_bytes", BigInteger, nullable=False),
    Column("owner", String(64)),  # the server that indexes it
    Column("num_tries", Integer, nullable=False),
    Column("created_at", Float(53), nullable=False),
    UniqueConstraint("store_id", "file_id"),
    Index("vector_store_files_by_store", "store_id", "number"),
    Index("vector_store_files_by_file", "file_id"),
    Index("vector_store_files_by_status", "status", "number"),
    # A number must never come again: chunks of a deleted file are deleted a little later.
    sqlite_autoincrement=True,
)

vector_store_chunks = Table(
    "vector_store_chunks",
    metadata,
    Column("number", _Counter, primary_key=True),
    Column("file_number", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("start", BigInteger, nullable=False),  # characters of the file before the chunk
    Column("heading", Name, nullable=False),
    Column("text", Name, nullable=False),
    Index("vector_store_chunks_by_file", "file_number", "position"),
)

# Each row has the vectors of several chunks of a file; a chunk may have more than one.
vector_store_vectors = Table(
    "vector_store_vectors",
    metadata,
    Column("file_number", BigInteger, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("positions", LargeBinary, nullable=False),  # the chunk of each vector, int32
    Column("vectors", LargeBinary, nullable=False),  # float16
)

# The files that were deleted, but whose chunks and vectors are still there.
vector_store_waste = Table(
    "vector_store_waste",
    metadata,
    Column("file_number", BigInteger, primary_key=True, autoincrement=False),
)

vector_store_batches = Table(
    "vector_store_batches",
    metadata,
    Column("id", Name, primary_key=True),
    Column("store_id", Name, nullable=False, index=True),
    Column("key_id", Name),
    Column("is_cancelled", Boolean, nullable=False),
    Column("created_at", Float(53), nullable=False),
)
