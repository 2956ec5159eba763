"""Stores responses, and changes them by compare-and-set.

A change is written only if the response has exactly the number of events that the caller knows.
"""

import zlib
from collections.abc import Sequence
from typing import Any  # rows of SQLAlchemy

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    bindparam,
    delete,
    insert,
    literal,
    select,
    update,
)

from ouzel.store.conversations import append_and_unlock, lock, unlock
from ouzel.store.items import add_items, compute_size
from ouzel.store.records import Item, NewResponse, Progress, Status, StoredResponse
from ouzel.store.tables import RUNNING, events, items, responses, unix_now

# Level of compression. Events repeat their field names: higher levels gain little and cost much.
_LEVEL = 1
_ROW_BYTES = 512  # estimated size of a response's row without body, request, items and events
COLUMNS = [responses.c[name] for name in StoredResponse.__struct_fields__]
# Fields of a new response that are columns too; `add` converts the status.
_GIVEN = [name for name in NewResponse.__struct_fields__ if name in responses.c]
_APPENDED = (Status.COMPLETED, Status.INCOMPLETE)  # items of such responses join the conversation

# Frequent statements are built once: building one takes as long as running it.
_ADD = insert(responses).values(created_at=unix_now(), used_at=unix_now())
_ADD_EVENTS = insert(events)
_MOVE_ON = (
    update(responses)
    .where(
        responses.c.id == bindparam("of_id"),
        responses.c.status.in_(RUNNING),
        responses.c.num_events == bindparam("known_events"),
    )
    .values(
        status=bindparam("new_status"),
        body=bindparam("new_body"),
        num_events=bindparam("new_num_events"),
        owner=bindparam("new_owner"),
        size_bytes=responses.c.size_bytes + bindparam("added_bytes"),
    )
    .returning(responses.c.key_id, responses.c.conversation_id, responses.c.num_items)
)
_END = _MOVE_ON.values(request=None, used_at=unix_now())


def add(
    connection: Connection, new: NewResponse, owner: str, output_items: Sequence[Item] = ()
) -> None:
    """Adds a response and locks its conversation, if it has one.

    Raises ConversationNotFound or ConversationLocked.
    """
    assert not (new.previous_response_id and new.conversation_id), (
        "a response continues one or the other"
    )
    assert not (new.status.is_final and new.conversation_id), "the conversation would stay locked"
    num_conversation_items = (
        lock(connection, new.conversation_id, new) if new.conversation_id else 0
    )
    batch = _pack(new.events) if new.events else b""
    num_bytes = len(new.body) + len(new.request or b"") + len(batch)
    size_bytes = _ROW_BYTES + num_bytes + compute_size([*new.input_items, *output_items])
    row = {name: getattr(new, name) for name in _GIVEN} | {
        "status": new.status.value,
        "num_conversation_items": num_conversation_items,
        "num_items": len(new.input_items),
        "num_events": len(new.events),
        "owner": None if new.status.is_final else owner,
        "size_bytes": size_bytes,
    }
    connection.execute(_ADD, row)
    add_items(connection, new.id, new.key_id, new.input_items, position=0)
    add_items(
        connection, new.id, new.key_id, output_items, position=len(new.input_items), is_output=True
    )
    _add_events(connection, new.id, 0, len(new.events), batch)


def record(
    connection: Connection, response_id: str, progress: Progress, first_event: int, server_id: str
) -> bool:
    """Writes progress of a response and makes the server its owner.

    Returns False and changes nothing if the response has ended, was deleted or has other events. If
    two servers run the same response, the server that gets False drops it.
    """
    batch = _pack(progress.events) if progress.events else b""
    is_final = progress.status.is_final
    values = {
        "of_id": response_id,
        "known_events": first_event,
        "new_status": progress.status.value,
        "new_body": progress.body,
        "new_num_events": first_event + len(progress.events),
        "new_owner": None if is_final else server_id,
        "added_bytes": len(batch) + (compute_size(progress.output_items) if is_final else 0),
    }
    row = connection.execute(_END if is_final else _MOVE_ON, values).one_or_none()
    if row is None:
        return False
    _add_events(connection, response_id, first_event, len(progress.events), batch)
    if progress.status.is_final:
        _end(connection, response_id, row, progress)
    return True


def _end(connection: Connection, response_id: str, row: Row[Any], progress: Progress) -> None:
    """Stores the output items, and ends the lock of the conversation.

    The conversation gets the input and output items of a completed or incomplete response. A failed
    or cancelled response adds no items.
    """
    add_items(
        connection,
        response_id,
        row.key_id,
        progress.output_items,
        position=row.num_items,
        is_output=True,
    )
    if row.conversation_id is None:
        return
    if progress.status in _APPENDED:
        new_items = [*_input_items(connection, response_id), *progress.output_items]
        append_and_unlock(connection, row.conversation_id, response_id, new_items)
    else:
        unlock(connection, row.conversation_id, response_id)


def _input_items(connection: Connection, response_id: str) -> list[Item]:
    query = select(items.c.id, items.c.body).where(
        items.c.owner_id == response_id, items.c.is_output.is_(False)
    )
    return [Item(*row) for row in connection.execute(query.order_by(items.c.position))]


def _add_events(
    connection: Connection, response_id: str, first_event: int, num_events: int, batch: bytes
) -> None:
    if num_events:
        row = {
            "response_id": response_id,
            "first_event": first_event,
            "end_event": first_event + num_events,
            "batch": batch,
        }
        connection.execute(_ADD_EVENTS, row)


def build_response(row: Row[Any]) -> StoredResponse:
    values = row._asdict()
    return StoredResponse(**values | {"status": Status(values["status"])})


def belongs_to_key(response_id: str, key_id: str | None) -> ColumnElement[bool]:
    return (responses.c.id == response_id) & responses.c.key_id.is_not_distinct_from(key_id)


def get(connection: Connection, response_id: str, key_id: str | None) -> StoredResponse | None:
    row = connection.execute(
        select(*COLUMNS).where(belongs_to_key(response_id, key_id))
    ).one_or_none()
    return None if row is None else build_response(row)


def events_after(
    connection: Connection, response_id: str, key_id: str | None, after: int
) -> tuple[bytes, ...]:
    query = (
        select(events.c.first_event, events.c.batch)
        .join(responses, responses.c.id == events.c.response_id)
        .where(
            belongs_to_key(response_id, key_id), events.c.end_event > literal(after + 1, BigInteger)
        )
        .order_by(events.c.first_event)
    )
    return tuple(
        event
        for first_event, batch in connection.execute(query)
        for number, event in enumerate(_unpack(batch), first_event)
        if number > after
    )


def remove(connection: Connection, response_id: str, key_id: str | None) -> bool:
    query = (
        delete(responses)
        .where(belongs_to_key(response_id, key_id))
        .returning(responses.c.conversation_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return False
    connection.execute(delete(items).where(items.c.owner_id == response_id))
    connection.execute(delete(events).where(events.c.response_id == response_id))
    if row.conversation_id is not None:
        unlock(connection, row.conversation_id, response_id)
    return True


def _pack(events: Sequence[bytes]) -> bytes:
    """Compresses the events of one write, which are a batch."""
    return zlib.compress(msgspec.msgpack.encode(events), _LEVEL)


def _unpack(batch: bytes) -> list[bytes]:
    return msgspec.msgpack.decode(zlib.decompress(batch), type=list[bytes])
