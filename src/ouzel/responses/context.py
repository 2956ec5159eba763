"""What the input of a response continues: an earlier response, a conversation, single items kept before."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ouzel.errors import ConversationNotFound, InvalidRequest, ItemNotFound, PreviousResponseNotFound
from ouzel.responses.input_items import Message, PlacedItem, input_items_of, referenced_id
from ouzel.responses.recent_responses import RecentResponses
from ouzel.responses.request import ResponsesRequest, conversation_id_of
from ouzel.store.base import Store
from ouzel.store.records import Item

_KEEPS_NOTHING = "this server keeps nothing"


@dataclass(frozen=True, slots=True)
class Context:
    earlier: Sequence[PlacedItem]
    given: Sequence[PlacedItem]  # the input, its references resolved
    keeps_earlier: bool = True  # the store does, where there are any

    @property
    def items(self) -> list[PlacedItem]:
        return [*self.earlier, *self.given]

    @property
    def last_item_read(self) -> str:
        """Its id, of those before the input that the store has; empty where there are none."""
        return str(self.earlier[-1].item["id"]) if self.earlier and self.keeps_earlier else ""

    @property
    def to_keep(self) -> Sequence[PlacedItem]:
        """With a response that is kept: what no other keeps."""
        return self.given if self.keeps_earlier else self.items


async def context_of(
    asked: ResponsesRequest, store: Store | None, key_id: str | None, recent: RecentResponses | None = None
) -> Context:
    """Raises InvalidRequest, ResponseNotFound, ConversationNotFound or ItemNotFound for what is not kept.

    `recent`: responses that are not, and may be continued all the same.
    """
    continues = asked.previous_response_id is not None or asked.conversation is not None
    has_none = (asked.input is None and continues) or (asked.input == [] and (continues or recent is not None))
    given = [] if has_none else input_items_of(asked.input)
    said = None if recent is None else _recently_said(asked, recent, is_last_resort=store is None)
    if store is None:
        _refuse_references(asked, given, is_recent=said is not None)
    else:
        given = [await resolved(placed, store, key_id) for placed in given]
    if said is not None:
        return Context(said, given, keeps_earlier=False)
    return Context(() if store is None else await _earlier(asked, store, key_id), given)


def _recently_said(
    asked: ResponsesRequest, recent: RecentResponses, *, is_last_resort: bool
) -> list[PlacedItem] | None:
    field, response_id = "previous_response_id", asked.previous_response_id
    if response_id is None:
        return None
    _refuse_both(asked)
    said = recent.find(response_id)
    if said is None and is_last_resort:
        raise PreviousResponseNotFound(response_id, param=field)
    return None if said is None else [PlacedItem(item, field) for item in said]


def _refuse_references(asked: ResponsesRequest, given: Iterable[PlacedItem], *, is_recent: bool) -> None:
    references = {
        "previous_response_id": None if is_recent else asked.previous_response_id,
        "conversation": conversation_id_of(asked),
    }
    for field, value in references.items():
        if value is not None:
            raise InvalidRequest(f"must not be given: {_KEEPS_NOTHING}, given {value}", field=field)
    for placed in given:
        if referenced_id(placed) is not None:
            raise InvalidRequest(
                f"must not be an item_reference: {_KEEPS_NOTHING}, given {referenced_id(placed)}",
                field=placed.path,
            )


def _refuse_both(asked: ResponsesRequest) -> None:
    if asked.previous_response_id is not None and asked.conversation is not None:
        raise InvalidRequest("must not be given beside previous_response_id", field="conversation")


async def resolved(placed: PlacedItem, store: Store, key_id: str | None) -> PlacedItem:
    """A reference: the item itself. Raises ItemNotFound."""
    item_id = referenced_id(placed)
    if item_id is None:
        return placed
    item = await store.item(item_id, key_id)
    if item is None:
        raise ItemNotFound(item_id, param=placed.path)
    return PlacedItem(_decoded(item), placed.path)


async def _earlier(asked: ResponsesRequest, store: Store, key_id: str | None) -> list[PlacedItem]:
    conversation_id = conversation_id_of(asked)
    if asked.previous_response_id is None and conversation_id is None:
        return []
    _refuse_both(asked)
    if conversation_id is not None:
        field, items = "conversation", await _said_in(conversation_id, store, key_id)
    else:
        assert asked.previous_response_id is not None
        field, items = "previous_response_id", await _history(asked.previous_response_id, store, key_id)
    return await asyncio.to_thread(kept_before, items, field)


async def _said_in(conversation_id: str, store: Store, key_id: str | None) -> list[Item]:
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
        said = previous.status.value.replace("_", " ")
        raise InvalidRequest(f"must be of a response that has ended, given one {said}", field=field)
    return await store.history(response_id, key_id)


def kept_before(items: Iterable[Item], field: str) -> list[PlacedItem]:
    """`field`: the one that leads to them."""
    return [PlacedItem(_decoded(item), field) for item in items]


def _decoded(item: Item) -> Message:
    return msgspec.json.decode(item.body, type=Message)
