"""Stores conversations with their items.

One response at a time is made in a conversation; this response holds the lock of the conversation.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from ouzel.store.errors import ConversationLocked, ConversationNotFound, ItemNotFound
from ouzel.store.items import add_items, compute_size
from ouzel.store.records import Item, NewResponse, Page, PageRequest, StoredConversation
from ouzel.store.tables import conversations, items, unix_now

_ROW_BYTES = 512  # estimated size of a conversation's row without metadata and items


def _belongs_to_key(conversation_id: str, key_id: str | None) -> ColumnElement[bool]:
    is_of_key = conversations.c.key_id.is_not_distinct_from(key_id)
    return (conversations.c.id == conversation_id) & is_of_key


def create(
    connection: Connection,
    conversation_id: str,
    key_id: str | None,
    metadata: dict[str, str],
    new_items: Sequence[Item],
) -> StoredConversation:
    encoded = msgspec.json.encode(metadata)
    query = (
        insert(conversations)
        .values(
            id=conversation_id,
            key_id=key_id,
            metadata=encoded,
            next_position=len(new_items),
            created_at=unix_now(),
            used_at=unix_now(),
            size_bytes=_ROW_BYTES + len(encoded) + compute_size(new_items),
        )
        .returning(conversations.c.created_at)
    )
    created_at = connection.execute(query).scalar_one()
    add_items(connection, conversation_id, key_id, new_items, position=0)
    return StoredConversation(id=conversation_id, created_at=int(created_at), metadata=metadata)


def get(
    connection: Connection, conversation_id: str, key_id: str | None
) -> StoredConversation | None:
    query = select(conversations.c.metadata, conversations.c.created_at).where(
        _belongs_to_key(conversation_id, key_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    metadata = msgspec.json.decode(row.metadata, type=dict[str, str])
    return StoredConversation(id=conversation_id, created_at=int(row.created_at), metadata=metadata)


def change(
    connection: Connection, conversation_id: str, key_id: str | None, metadata: dict[str, str]
) -> StoredConversation | None:
    encoded = msgspec.json.encode(metadata)
    grown_bytes = len(encoded) - func.length(conversations.c.metadata)
    connection.execute(
        update(conversations)
        .where(_belongs_to_key(conversation_id, key_id))
        .values(
            metadata=encoded,
            size_bytes=conversations.c.size_bytes + grown_bytes,
            used_at=unix_now(),
        )
    )
    return get(connection, conversation_id, key_id)


def remove(connection: Connection, conversation_id: str, key_id: str | None) -> bool:
    """Deletes a conversation and its items.

    A response that is being made in the conversation goes on, and its end adds no items.
    """
    num_deleted = connection.execute(
        delete(conversations).where(_belongs_to_key(conversation_id, key_id))
    ).rowcount
    if num_deleted:
        connection.execute(delete(items).where(items.c.owner_id == conversation_id))
    return bool(num_deleted)


def lock(connection: Connection, conversation_id: str, new: NewResponse) -> int:
    """Locks a conversation for a new response and returns the position of the next item.

    Raises ConversationNotFound, or ConversationLocked. The latter is raised, too, if items were
    added after the new response has read the conversation.
    """
    query = (
        update(conversations)
        .where(_belongs_to_key(conversation_id, new.key_id), conversations.c.locked_by.is_(None))
        .values(locked_by=new.id, used_at=unix_now())
        .returning(conversations.c.next_position)
    )
    position = connection.execute(query).scalar_one_or_none()
    if position is None:
        _check_exists(connection, conversation_id, new.key_id)
    if position is None or new.last_item_read not in (None, _last_id(connection, conversation_id)):
        raise ConversationLocked(conversation_id)
    return int(position)


def unlock(connection: Connection, conversation_id: str, response_id: str) -> None:
    connection.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.locked_by == response_id)
        .values(locked_by=None)
    )


def append_and_unlock(
    connection: Connection, conversation_id: str, response_id: str, new_items: Sequence[Item]
) -> None:
    """Adds the items of a response and releases its lock, unless the conversation was deleted."""
    query = (
        update(conversations)
        .where(conversations.c.id == conversation_id, conversations.c.locked_by == response_id)
        .values(
            locked_by=None,
            next_position=conversations.c.next_position + len(new_items),
            size_bytes=conversations.c.size_bytes + compute_size(new_items),
            used_at=unix_now(),
        )
        .returning(conversations.c.key_id, conversations.c.next_position)
    )
    row = connection.execute(query).one_or_none()
    if row is not None:
        add_items(
            connection,
            conversation_id,
            row.key_id,
            new_items,
            position=row.next_position - len(new_items),
        )


def append(
    connection: Connection, conversation_id: str, key_id: str | None, new_items: Sequence[Item]
) -> None:
    """Adds items at the end.

    Raises ConversationNotFound, or ConversationLocked: no item may come between the items that a
    response has read and its output.
    """
    query = (
        update(conversations)
        .where(_belongs_to_key(conversation_id, key_id), conversations.c.locked_by.is_(None))
        .values(
            next_position=conversations.c.next_position + len(new_items),
            size_bytes=conversations.c.size_bytes + compute_size(new_items),
            used_at=unix_now(),
        )
        .returning(conversations.c.next_position)
    )
    end = connection.execute(query).scalar_one_or_none()
    if end is None:
        _check_exists(connection, conversation_id, key_id)
        raise ConversationLocked(conversation_id, param=None)
    add_items(connection, conversation_id, key_id, new_items, position=end - len(new_items))


def all_items(connection: Connection, conversation_id: str, key_id: str | None) -> list[Item]:
    _check_exists(connection, conversation_id, key_id)
    query = (
        select(items.c.id, items.c.body)
        .where(items.c.owner_id == conversation_id)
        .order_by(items.c.position)
    )
    return [Item(*row) for row in connection.execute(query)]


def item(
    connection: Connection, conversation_id: str, key_id: str | None, item_id: str
) -> Item | None:
    _check_exists(connection, conversation_id, key_id)
    query = select(items.c.id, items.c.body).where(
        items.c.owner_id == conversation_id, items.c.id == item_id
    )
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else Item(*row)


def page(
    connection: Connection, conversation_id: str, key_id: str | None, request: PageRequest
) -> Page:
    """Returns a page of the items; raises ItemNotFound for an unknown `after`."""
    _check_exists(connection, conversation_id, key_id)
    position = items.c.position if request.is_ascending else -items.c.position
    query = select(items.c.id, items.c.body).where(items.c.owner_id == conversation_id)
    if request.after is not None:
        last = select(func.max(position)).where(
            items.c.owner_id == conversation_id, items.c.id == request.after
        )
        after = connection.execute(last).scalar_one()
        if after is None:
            raise ItemNotFound(request.after, param="after")
        query = query.where(position > after)
    following = [
        Item(*row) for row in connection.execute(query.order_by(position).limit(request.limit + 1))
    ]
    return Page(tuple(following[: request.limit]), has_more=len(following) > request.limit)


def remove_item(
    connection: Connection, conversation_id: str, key_id: str | None, item_id: str
) -> bool:
    """Removes an item from the conversation; the response that made the item still has it."""
    _check_exists(connection, conversation_id, key_id)
    query = delete(items).where(items.c.owner_id == conversation_id, items.c.id == item_id)
    removed_items = [
        Item(*row) for row in connection.execute(query.returning(items.c.id, items.c.body))
    ]
    connection.execute(
        update(conversations)
        .where(conversations.c.id == conversation_id)
        .values(
            size_bytes=conversations.c.size_bytes - compute_size(removed_items), used_at=unix_now()
        )
    )
    return bool(removed_items)


def _last_id(connection: Connection, conversation_id: str) -> str:
    """Returns the id of the last item; "" if there is none."""
    query = (
        select(items.c.id)
        .where(items.c.owner_id == conversation_id)
        .order_by(items.c.position.desc())
    )
    return connection.execute(query.limit(1)).scalar_one_or_none() or ""


def _check_exists(connection: Connection, conversation_id: str, key_id: str | None) -> None:
    query = select(conversations.c.id).where(_belongs_to_key(conversation_id, key_id))
    if connection.execute(query).scalar_one_or_none() is None:
        raise ConversationNotFound(conversation_id)
