"""What is deleted when nobody has used it for long, or when the store holds too much: the least recently used first.

Sizes are counted from the content with a flat cost for each row, alike in both databases.
"""

from collections.abc import Collection
from typing import Any  # rows of SQLAlchemy

from sqlalchemy import Connection, Row, Select, delete, func, literal, select, union_all, update

from ouzel.store.history import chain_from
from ouzel.store.tables import RUNNING, conversations, events, items, responses, unix_now

_MAX_DELETED = 100  # in one transaction, so that others come between


def touch(connection: Connection, ids: Collection[str], touch_s: float) -> None:
    """Responses with all that they continue, and conversations, unless used within `touch_s` anyway."""
    chain = chain_from(responses.c.id.in_(ids))
    is_due = unix_now() - touch_s
    in_chain = select(chain.c.conversation_id).where(chain.c.conversation_id.is_not(None))
    connection.execute(
        update(responses)
        .where(responses.c.id.in_(select(chain.c.id)), responses.c.used_at < is_due)
        .values(used_at=unix_now())
    )
    connection.execute(
        update(conversations)
        .where(conversations.c.id.in_(ids) | conversations.c.id.in_(in_chain), conversations.c.used_at < is_due)
        .values(used_at=unix_now())
    )


def delete_some(connection: Connection, max_age_s: float, max_bytes: int) -> int:
    """A few of those that are due; 0 when none is left."""
    excess_bytes = _held_bytes(connection) - max_bytes
    due = []
    for row in connection.execute(_least_recently_used()):
        if row.age_s <= max_age_s and excess_bytes <= 0:
            break
        due.append(row)
        excess_bytes -= row.size_bytes
    return _delete(connection, due) if due else 0


def _held_bytes(connection: Connection) -> int:
    totals = [select(func.coalesce(func.sum(table.c.size_bytes), 0)) for table in (responses, conversations)]
    return sum(int(connection.execute(total).scalar_one()) for total in totals)


def _least_recently_used() -> Select[Any]:
    """Responses that go on stay, and so do the conversations that they hold."""
    candidates = union_all(
        select(responses.c.id, responses.c.used_at, responses.c.size_bytes, literal(True).label("is_response")).where(
            responses.c.status.not_in(RUNNING)
        ),
        select(conversations.c.id, conversations.c.used_at, conversations.c.size_bytes, literal(False)).where(
            conversations.c.locked_by.is_(None)
        ),
    ).subquery()
    age_s = (unix_now() - candidates.c.used_at).label("age_s")
    columns = (candidates.c.id, candidates.c.size_bytes, candidates.c.is_response, age_s)
    return select(*columns).order_by(candidates.c.used_at).limit(_MAX_DELETED)


def _delete(connection: Connection, due: list[Row[Any]]) -> int:
    response_ids = [row.id for row in due if row.is_response]
    conversation_ids = [row.id for row in due if not row.is_response]
    gone = delete(conversations).where(conversations.c.id.in_(conversation_ids), conversations.c.locked_by.is_(None))
    ids = list(connection.execute(gone.returning(conversations.c.id)).scalars())
    ids += connection.execute(
        delete(responses).where(responses.c.id.in_(response_ids)).returning(responses.c.id)
    ).scalars()
    connection.execute(delete(items).where(items.c.owner_id.in_(ids)))
    connection.execute(delete(events).where(events.c.response_id.in_(response_ids)))
    return len(due)
