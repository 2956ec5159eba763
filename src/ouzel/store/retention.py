"""Deletes responses and conversations that are too old or exceed the size limit of the store.

The least recently used are deleted first. Sizes are computed from the content, plus a flat size for
each row, in the same way for both databases.
"""

from collections.abc import Collection
from typing import Any  # rows of SQLAlchemy

from sqlalchemy import CTE, Connection, Row, delete, func, select, update

from ouzel.store.tables import RUNNING, conversations, events, items, responses, unix_now

_MAX_DELETED = 100  # rows per transaction, so that other transactions run in between
_is_final = responses.c.status.not_in(RUNNING)
_is_free = conversations.c.locked_by.is_(None)


def touch(connection: Connection, ids: Collection[str], touch_s: float) -> None:
    """Marks responses and conversations, and everything that the responses continue, as used.

    Rows that were marked within the last `touch_s` seconds are left unchanged.
    """
    used = _used_with(ids)
    is_due = unix_now() - touch_s
    made_in = select(used.c.conversation_id).where(used.c.conversation_id.is_not(None))
    connection.execute(
        update(responses)
        .where(responses.c.id.in_(select(used.c.id)), responses.c.used_at < is_due)
        .values(used_at=unix_now())
    )
    connection.execute(
        update(conversations)
        .where(
            conversations.c.id.in_(ids) | conversations.c.id.in_(made_in),
            conversations.c.used_at < is_due,
        )
        .values(used_at=unix_now())
    )


def _used_with(ids: Collection[str]) -> CTE:
    """Selects the responses and all responses that they continue, each of them once."""
    columns = (responses.c.id, responses.c.previous_response_id, responses.c.conversation_id)
    used = select(*columns).where(responses.c.id.in_(ids)).cte("used", recursive=True)
    return used.union(select(*columns).where(responses.c.id == used.c.previous_response_id))


def delete_some(connection: Connection, max_age_s: float, max_bytes: int) -> int:
    """Deletes up to 100 responses and conversations that are due; returns 0 when none is left."""
    excess_bytes = _held_bytes(connection) - max_bytes
    due = []
    for row in _least_recently_used(connection):
        if row.age_s <= max_age_s and excess_bytes <= 0:
            break
        due.append(row)
        excess_bytes -= row.size_bytes
    return _delete(connection, [row.id for row in due]) if due else 0


def _held_bytes(connection: Connection) -> int:
    totals = [
        select(func.coalesce(func.sum(table.c.size_bytes), 0))
        for table in (responses, conversations)
    ]
    return sum(int(connection.execute(total).scalar_one()) for total in totals)


def _least_recently_used(connection: Connection) -> list[Row[Any]]:
    """Selects finished responses and unlocked conversations, the least recently used first."""
    rows: list[Row[Any]] = []
    for table, may_go in ((responses, _is_final), (conversations, _is_free)):
        age_s = (unix_now() - table.c.used_at).label("age_s")
        query = select(table.c.id, table.c.size_bytes, age_s).where(may_go)
        rows += connection.execute(query.order_by(table.c.used_at).limit(_MAX_DELETED))
    return sorted(rows, key=lambda row: row.age_s, reverse=True)[:_MAX_DELETED]


def _delete(connection: Connection, ids: list[str]) -> int:
    deleted_ids: list[str] = []
    for table, may_go in ((responses, _is_final), (conversations, _is_free)):
        deleted_ids += connection.execute(
            delete(table).where(table.c.id.in_(ids), may_go).returning(table.c.id)
        ).scalars()
    connection.execute(delete(items).where(items.c.owner_id.in_(deleted_ids)))
    connection.execute(delete(events).where(events.c.response_id.in_(deleted_ids)))
    return len(deleted_ids)
