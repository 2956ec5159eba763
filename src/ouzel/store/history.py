"""Collects the history of a response: the items of the responses and conversation before it.

A response continues a chain of earlier responses; the first response of the chain may have been
made in a conversation. The history has the items that the conversation had when that response
began. Items that were deleted since then are left out, and so are items that were added later.
"""

from typing import Any  # rows of SQLAlchemy

from sqlalchemy import CTE, Connection, Row, literal, select

from ouzel.store.errors import HistoryLost, ResponseNotFound
from ouzel.store.records import Item
from ouzel.store.responses import belongs_to_key
from ouzel.store.tables import conversations, items, responses


def _chain(response_id: str, key_id: str | None) -> CTE:
    """Selects the response, at depth 0, and the earlier responses that it continues."""
    columns = (
        responses.c.id,
        responses.c.key_id,
        responses.c.previous_response_id,
        responses.c.conversation_id,
        responses.c.num_conversation_items,
    )
    start = (
        select(*columns, literal(0).label("depth"))
        .where(belongs_to_key(response_id, key_id))
        .cte("chain", recursive=True)
    )
    before = select(*columns, (start.c.depth + 1).label("depth")).where(
        responses.c.id == start.c.previous_response_id,
        responses.c.key_id.is_not_distinct_from(start.c.key_id),
    )
    return start.union_all(before)


def history(
    connection: Connection, response_id: str, key_id: str | None, *, with_output: bool = True
) -> list[Item]:
    """Returns the history and the input of a response, oldest first, and its output `with_output`.

    Raises ResponseNotFound, or HistoryLost if an earlier response or conversation was deleted.
    """
    chain = _chain(response_id, key_id)
    root = connection.execute(select(chain).order_by(chain.c.depth.desc()).limit(1)).one_or_none()
    if root is None:
        raise ResponseNotFound(response_id)
    if root.previous_response_id is not None:  # the earlier response has no row: it was deleted
        raise HistoryLost(response_id, root.previous_response_id)
    query = (
        select(items.c.id, items.c.body)
        .join(chain, chain.c.id == items.c.owner_id)
        .order_by(chain.c.depth.desc(), items.c.position)
    )
    if not with_output:
        query = query.where((chain.c.depth > 0) | items.c.is_output.is_(False))
    chain_items = [Item(*row) for row in connection.execute(query)]
    return _conversation_items(connection, response_id, root) + chain_items


def _conversation_items(connection: Connection, response_id: str, root: Row[Any]) -> list[Item]:
    """Returns the items that the chain's first response found in its conversation."""
    if root.conversation_id is None:
        return []
    exists = select(conversations.c.id).where(conversations.c.id == root.conversation_id)
    if connection.execute(exists).scalar_one_or_none() is None:
        raise HistoryLost(response_id, root.conversation_id)
    query = (
        select(items.c.id, items.c.body)
        .where(
            items.c.owner_id == root.conversation_id, items.c.position < root.num_conversation_items
        )
        .order_by(items.c.position)
    )
    return [Item(*row) for row in connection.execute(query)]
