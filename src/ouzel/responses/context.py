"""Collects the input items of a response: earlier ones, the body's own, and referenced ones.

The input may continue an earlier response or a conversation, and may refer to stored items by id.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.responses.input_items import InputItem, read_input, referenced_id
from ouzel.responses.item_fields import Message
from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.responses.request import ResponsesRequest, find_conversation_id
from ouzel.responses.stored.recent_responses import History, RecentResponses
from ouzel.store.base import Store
from ouzel.store.errors import ConversationNotFound, ItemNotFound, PreviousResponseNotFound
from ouzel.store.records import Item

_KEEPS_NOTHING = "this server stores nothing"


@dataclass(frozen=True, slots=True)
class Context:
    """All items from which the prompt of a response is rendered."""

    earlier: Sequence[InputItem]
    input: Sequence[InputItem]  # references are resolved
    has_stored_earlier: bool = True  # the store has the items of `earlier`, if there are any
    num_recent_bytes: int = 0  # bytes of `earlier` if the store does not have its items
    compaction: CompactionItem | None = None  # replaces `earlier` and `input` for the model
    output: Sequence[InputItem] = ()  # items that the response has, before a further turn
    template: Sequence[InputItem] = ()  # messages of the prompt template; they are not stored

    @property
    def items(self) -> list[InputItem]:
        compaction = () if self.compaction is None else [_input_item(self.compaction)]
        return [*self.template, *self.earlier, *self.input, *compaction, *self.output]

    @property
    def last_item_read(self) -> str:
        """Returns the id of the last stored item before the input; "" if there is none."""
        return (
            str(self.earlier[-1].fields["id"]) if self.earlier and self.has_stored_earlier else ""
        )

    @property
    def num_stored_bytes(self) -> int:
        """Returns the bytes of the items that did not come with the request."""
        return self.num_recent_bytes + sum(item.num_stored_bytes for item in self.items)

    @property
    def items_to_store(self) -> Sequence[InputItem]:
        """Returns the items to store with the response: all items that the store lacks."""
        return self.input if self.has_stored_earlier else [*self.earlier, *self.input]


async def read_context(
    fields: ResponsesRequest,
    store: Store | None,
    key_id: str | None,
    recent: RecentResponses | None = None,
    template: Sequence[InputItem] = (),
) -> Context:
    """Reads the earlier items from the store, or from `recent`, and resolves item references.

    `recent` has the responses of this connection, which can be continued without a store. Raises
    InvalidRequest if the server has no store, else ResponseNotFound, ConversationNotFound or
    ItemNotFound.
    """
    items = _own_items(fields, may_be_empty=recent is not None, has_template=bool(template))
    history = None
    if recent is not None:
        history = _recent_history(fields, recent, is_last_resort=store is None)
    if store is None:
        _refuse_references(fields, items, is_recent=history is not None)
    else:
        items = [await resolve_reference(item, store, key_id) for item in items]
    if history is not None:
        earlier = [InputItem(item, "previous_response_id") for item in history.items]
        return Context(
            earlier,
            items,
            has_stored_earlier=False,
            num_recent_bytes=history.num_bytes,
            template=template,
        )
    stored = () if store is None else await _earlier(fields, store, key_id)
    return Context(stored, items, template=template)


def build_standalone_context(
    fields: ResponsesRequest, *, may_be_empty: bool, template: Sequence[InputItem] = ()
) -> Context | None:
    """Returns the context of an input that needs no store.

    Returns None if the input continues a response or conversation, or refers to an item.
    """
    if _continues(fields):
        return None
    items = _own_items(fields, may_be_empty=may_be_empty, has_template=bool(template))
    if any(referenced_id(item) is not None for item in items):
        return None
    return Context((), items, template=template)


def _own_items(
    fields: ResponsesRequest, *, may_be_empty: bool, has_template: bool
) -> list[InputItem]:
    adds_to_others = has_template or _continues(fields)
    if fields.input is None and adds_to_others:
        return []
    if fields.input == [] and (adds_to_others or may_be_empty):
        return []
    return read_input(fields.input)


def _continues(fields: ResponsesRequest) -> bool:
    return fields.previous_response_id is not None or fields.conversation is not None


def _recent_history(
    fields: ResponsesRequest, recent: RecentResponses, *, is_last_resort: bool
) -> History | None:
    """Finds the response to continue in `recent`.

    Raises PreviousResponseNotFound if it is not there and no store may have it (`is_last_resort`).
    """
    response_id = fields.previous_response_id
    if response_id is None:
        return None
    _refuse_both(fields)
    history = recent.find(response_id)
    if history is None and is_last_resort:
        raise PreviousResponseNotFound(response_id, param="previous_response_id")
    return history


def _refuse_references(
    fields: ResponsesRequest, items: Iterable[InputItem], *, is_recent: bool
) -> None:
    references = {
        "previous_response_id": None if is_recent else fields.previous_response_id,
        "conversation": find_conversation_id(fields),
    }
    for field, value in references.items():
        if value is not None:
            raise InvalidRequest(f"must not be given: {_KEEPS_NOTHING}, given {value}", field=field)
    for item in items:
        if referenced_id(item) is not None:
            raise InvalidRequest(
                f"must not be an item_reference: {_KEEPS_NOTHING}, given {referenced_id(item)}",
                field=item.path,
            )


def _refuse_both(fields: ResponsesRequest) -> None:
    if fields.previous_response_id is not None and fields.conversation is not None:
        raise InvalidRequest("must not be given beside previous_response_id", field="conversation")


async def resolve_reference(input_item: InputItem, store: Store, key_id: str | None) -> InputItem:
    """Reads the stored item that a reference names; returns any other item unchanged.

    Raises ItemNotFound.
    """
    item_id = referenced_id(input_item)
    if item_id is None:
        return input_item
    item = await store.item(item_id, key_id)
    if item is None:
        raise ItemNotFound(item_id, param=input_item.path)
    return InputItem(_decode(item), input_item.path, len(item.body))


async def _earlier(fields: ResponsesRequest, store: Store, key_id: str | None) -> list[InputItem]:
    conversation_id = find_conversation_id(fields)
    if fields.previous_response_id is None and conversation_id is None:
        return []
    _refuse_both(fields)
    if conversation_id is not None:
        field = "conversation"
        items = await _conversation_items(conversation_id, store, key_id)
    else:
        assert fields.previous_response_id is not None
        field = "previous_response_id"
        items = await _history(fields.previous_response_id, store, key_id)
    return await asyncio.to_thread(read_stored, items, field)


async def _conversation_items(conversation_id: str, store: Store, key_id: str | None) -> list[Item]:
    try:
        return await store.conversation_items(conversation_id, key_id)
    except ConversationNotFound:
        raise ConversationNotFound(conversation_id, param="conversation") from None


async def _history(response_id: str, store: Store, key_id: str | None) -> list[Item]:
    field = "previous_response_id"
    previous = await store.response(response_id, key_id)
    if previous is None:
        raise PreviousResponseNotFound(response_id, param=field)
    if not previous.status.is_final:
        status = previous.status.value.replace("_", " ")
        raise InvalidRequest(
            f"must be of a response that has ended, given one {status}", field=field
        )
    return await store.history(response_id, key_id)


def read_stored(items: Iterable[Item], field: str) -> list[InputItem]:
    """Decodes stored items; `field` is the request field that refers to the items."""
    return [InputItem(_decode(item), field, len(item.body)) for item in items]


def _input_item(compaction: CompactionItem) -> InputItem:
    return InputItem(msgspec.to_builtins(compaction), "context_management")


def _decode(item: Item) -> Message:
    return msgspec.json.decode(item.body, type=Message)
