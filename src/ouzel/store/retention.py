"""Deletes responses, conversations and chats that are too old or exceed the size limit.

The least recently used of all kinds are deleted first. Sizes are computed from the content, plus a
flat size for each row, in the same way for both databases.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any  # rows of SQLAlchemy

from sqlalchemy import (
    CTE,
    Column,
    ColumnElement,
    Connection,
    Row,
    Table,
    delete,
    func,
    select,
    true,
    update,
)

from ouzel.store.chats.tables import chat_labels, chat_messages, chats
from ouzel.store.tables import RUNNING, conversations, events, items, responses, unix_now

_MAX_DELETED = 100  # rows per transaction, so that other transactions run in between


@dataclass(frozen=True)
class _Kind:
    """A table of objects that are deleted with their parts."""

    table: Table
    may_go: ColumnElement[bool]
    parts: tuple[Column[Any], ...]  # columns of other tables, with ids of this table


_KINDS = (
    _Kind(responses, responses.c.status.not_in(RUNNING), (items.c.owner_id, events.c.response_id)),
    _Kind(conversations, conversations.c.locked_by.is_(None), (items.c.owner_id,)),
    _Kind(chats, true(), (chat_messages.c.chat_id, chat_labels.c.chat_id)),
)


def touch(connection: Connection, ids: Collection[str], touch_s: float) -> None:
    """Marks objects of all kinds, and everything that the responses continue, as used.

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
    connection.execute(
        update(chats)
        .where(chats.c.id.in_(ids), chats.c.used_at < is_due)
        .values(used_at=unix_now())
    )


def _used_with(ids: Collection[str]) -> CTE:
    """Selects the responses and all responses that they continue, each of them once."""
    columns = (responses.c.id, responses.c.previous_response_id, responses.c.conversation_id)
    used = select(*columns).where(responses.c.id.in_(ids)).cte("used", recursive=True)
    return used.union(select(*columns).where(responses.c.id == used.c.previous_response_id))


def delete_some(connection: Connection, max_age_s: float, max_bytes: int) -> int:
    """Deletes up to 100 objects that are due; returns 0 when none is left."""
    excess_bytes = _held_bytes(connection) - max_bytes
    due = []
    for row in _least_recently_used(connection):
        if row.age_s <= max_age_s and excess_bytes <= 0:
            break
        due.append(row)
        excess_bytes -= row.size_bytes
    return _delete(connection, [row.id for row in due]) if due else 0


def _held_bytes(connection: Connection) -> int:
    totals = [select(func.coalesce(func.sum(kind.table.c.size_bytes), 0)) for kind in _KINDS]
    return sum(int(connection.execute(total).scalar_one()) for total in totals)


def _least_recently_used(connection: Connection) -> list[Row[Any]]:
    """Selects objects that nothing is using now, the least recently used first."""
    rows: list[Row[Any]] = []
    for kind in _KINDS:
        used_at = kind.table.c.used_at
        age_s = (unix_now() - used_at).label("age_s")
        query = select(kind.table.c.id, kind.table.c.size_bytes, age_s).where(kind.may_go)
        rows += connection.execute(query.order_by(used_at).limit(_MAX_DELETED))
    return sorted(rows, key=lambda row: row.age_s, reverse=True)[:_MAX_DELETED]


def _delete(connection: Connection, ids: list[str]) -> int:
    num_deleted = 0
    for kind in _KINDS:
        table = kind.table
        query = delete(table).where(table.c.id.in_(ids), kind.may_go).returning(table.c.id)
        deleted_ids = connection.execute(query).scalars().all()
        for owner_id in kind.parts:
            connection.execute(delete(owner_id.table).where(owner_id.in_(deleted_ids)))
        num_deleted += len(deleted_ids)
    return num_deleted
