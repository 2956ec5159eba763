"""Implements stored chat completions on SQLite or Postgres; `base.py` describes each method."""

from collections.abc import Callable, Mapping

import msgspec
from sqlalchemy import ColumnElement, Connection, delete, exists, insert, select, update

from ouzel.store.chats.records import ChatFilter, ChatPage, NewChat, StoredChat
from ouzel.store.chats.tables import chat_labels, chat_messages, chats
from ouzel.store.database import Database
from ouzel.store.errors import ChatNotFound, ItemNotFound
from ouzel.store.items import compute_size
from ouzel.store.records import Item, Page, PageRequest
from ouzel.store.tables import make_storable, unix_now

_ROW_BYTES = 512  # estimated size of a row and its index entries, without body and metadata
_LABEL_BYTES = 128  # the same for a label
_ADD = insert(chats).values(used_at=unix_now())
_ADD_MESSAGES = insert(chat_messages)
_ADD_LABELS = insert(chat_labels)
_METADATA = msgspec.json.Decoder(dict[str, str])


class SqlChats:
    def __init__(self, database: Database, mark_used: Callable[[str], None]) -> None:
        """`mark_used` takes the id of each completion that is read."""
        self._database = database
        self._mark_used = mark_used

    async def add(self, new: NewChat) -> None:
        await self._database.write(_add, new)

    async def get(self, chat_id: str, key_id: str | None) -> StoredChat | None:
        chat = await self._database.read(_get, chat_id, key_id)
        if chat is not None:
            self._mark_used(chat_id)
        return chat

    async def page(self, key_id: str | None, chosen: ChatFilter, page: PageRequest) -> ChatPage:
        return await self._database.read(_page, key_id, chosen, page)

    async def messages(self, chat_id: str, key_id: str | None, page: PageRequest) -> Page:
        messages = await self._database.read(_messages, chat_id, key_id, page)
        self._mark_used(chat_id)
        return messages

    async def update(
        self, chat_id: str, key_id: str | None, metadata: dict[str, str]
    ) -> StoredChat | None:
        return await self._database.write(_update, chat_id, key_id, metadata)

    async def delete(self, chat_id: str, key_id: str | None) -> bool:
        return await self._database.delete(_delete, chat_id, key_id)


def _belongs_to_key(chat_id: str, key_id: str | None) -> ColumnElement[bool]:
    return (chats.c.id == chat_id) & chats.c.key_id.is_not_distinct_from(key_id)


def _read(chat_id: str, metadata: bytes, body: bytes) -> StoredChat:
    return StoredChat(id=chat_id, metadata=_METADATA.decode(metadata), body=body)


def _add(connection: Connection, new: NewChat) -> None:
    encoded = msgspec.json.encode(new.metadata)
    size_bytes = _ROW_BYTES + len(new.body) + compute_size(new.messages)
    row = {
        "id": new.id,
        "key_id": new.key_id,
        "model": new.model,
        "body": new.body,
        "metadata": encoded,
        "size_bytes": size_bytes + _compute_metadata_size(encoded, len(new.metadata)),
    }
    connection.execute(_ADD, row)
    messages = [
        {"chat_id": new.id, "position": position, "id": message.id, "body": message.body}
        for position, message in enumerate(new.messages)
    ]
    connection.execute(_ADD_MESSAGES, messages)
    _add_labels(connection, new.id, new.metadata)


def _compute_metadata_size(encoded: bytes, num_labels: int) -> int:
    return 2 * len(encoded) + _LABEL_BYTES * num_labels  # twice: in the row and in the labels


def _add_labels(connection: Connection, chat_id: str, metadata: Mapping[str, str]) -> None:
    # Names that differ only in characters that no database stores become one label.
    labels = {make_storable(name): value for name, value in metadata.items()}
    rows = [{"chat_id": chat_id, "name": name, "value": labels[name]} for name in labels]
    if rows:
        connection.execute(_ADD_LABELS, rows)


def _get(connection: Connection, chat_id: str, key_id: str | None) -> StoredChat | None:
    columns = (chats.c.id, chats.c.metadata, chats.c.body)
    row = connection.execute(select(*columns).where(_belongs_to_key(chat_id, key_id))).one_or_none()
    return None if row is None else _read(*row)


def _page(
    connection: Connection, key_id: str | None, chosen: ChatFilter, request: PageRequest
) -> ChatPage:
    number = chats.c.number if request.is_ascending else -chats.c.number
    query = select(chats.c.id, chats.c.metadata, chats.c.body).where(
        chats.c.key_id.is_not_distinct_from(key_id)
    )
    if chosen.model is not None:
        query = query.where(chats.c.model == chosen.model)
    for name, value in chosen.labels.items():
        query = query.where(
            exists().where(
                chat_labels.c.chat_id == chats.c.id,
                chat_labels.c.name == name,
                chat_labels.c.value == value,
            )
        )
    if request.after is not None:
        last = select(number).where(_belongs_to_key(request.after, key_id))
        after = connection.execute(last).scalar_one_or_none()
        if after is None:
            raise ChatNotFound(request.after, param="after")
        query = query.where(number > after)
    rows = connection.execute(query.order_by(number).limit(request.limit + 1)).all()
    return ChatPage(
        tuple(_read(*row) for row in rows[: request.limit]), has_more=len(rows) > request.limit
    )


def _messages(
    connection: Connection, chat_id: str, key_id: str | None, request: PageRequest
) -> Page:
    exists_query = select(chats.c.id).where(_belongs_to_key(chat_id, key_id))
    if connection.execute(exists_query).scalar_one_or_none() is None:
        raise ChatNotFound(chat_id, param="completion_id")
    position = chat_messages.c.position if request.is_ascending else -chat_messages.c.position
    is_of_chat = chat_messages.c.chat_id == chat_id
    query = select(chat_messages.c.id, chat_messages.c.body).where(is_of_chat)
    if request.after is not None:
        last = select(position).where(is_of_chat, chat_messages.c.id == request.after)
        after = connection.execute(last).scalar_one_or_none()
        if after is None:
            raise ItemNotFound(request.after, param="after")
        query = query.where(position > after)
    rows = connection.execute(query.order_by(position).limit(request.limit + 1))
    following = [Item(*row) for row in rows]
    return Page(tuple(following[: request.limit]), has_more=len(following) > request.limit)


def _update(
    connection: Connection, chat_id: str, key_id: str | None, metadata: dict[str, str]
) -> StoredChat | None:
    columns = (chats.c.metadata, chats.c.body)
    query = select(*columns).where(_belongs_to_key(chat_id, key_id)).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    encoded = msgspec.json.encode(metadata)
    old_bytes = _compute_metadata_size(row.metadata, len(_METADATA.decode(row.metadata)))
    new_bytes = _compute_metadata_size(encoded, len(metadata))
    connection.execute(
        update(chats)
        .where(chats.c.id == chat_id)
        .values(
            metadata=encoded,
            size_bytes=chats.c.size_bytes + new_bytes - old_bytes,
            used_at=unix_now(),
        )
    )
    connection.execute(delete(chat_labels).where(chat_labels.c.chat_id == chat_id))
    _add_labels(connection, chat_id, metadata)
    return StoredChat(id=chat_id, metadata=metadata, body=row.body)


def _delete(connection: Connection, chat_id: str, key_id: str | None) -> bool:
    num_deleted = connection.execute(delete(chats).where(_belongs_to_key(chat_id, key_id))).rowcount
    if num_deleted:
        for part in (chat_messages, chat_labels):
            connection.execute(delete(part).where(part.c.chat_id == chat_id))
    return bool(num_deleted)
