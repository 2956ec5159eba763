"""Limits the bytes of all vector stores, and of the vector stores of each API key.

The texts and the vectors of chunks count. Each function runs in a transaction.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select, text

from ouzel.store.errors import VectorStoresFull
from ouzel.store.vector_stores.tables import vector_store_files

_ADVISORY_LOCK = 0x766563746F7273  # "vectors"


@dataclass(frozen=True, slots=True)
class SizeLimits:
    max_bytes: int
    max_bytes_per_key: int


def require_room(
    connection: Connection, limits: SizeLimits, key_id: str | None, num_bytes: int
) -> None:
    """Raises VectorStoresFull if `num_bytes` more of an API key are beyond a limit."""
    if connection.dialect.name == "postgresql":  # two sums at once would both find room
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
    columns = vector_store_files.c
    used = select(func.coalesce(func.sum(columns.usage_bytes), 0))
    if int(connection.execute(used).scalar_one()) + num_bytes > limits.max_bytes:
        raise VectorStoresFull("this server", limits.max_bytes, "vector_stores_max_gib")
    of_key = used.where(columns.key_id.is_not_distinct_from(key_id))
    if int(connection.execute(of_key).scalar_one()) + num_bytes > limits.max_bytes_per_key:
        option = "vector_stores_key_max_gib"
        raise VectorStoresFull("this API key", limits.max_bytes_per_key, option)
