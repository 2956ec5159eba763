"""Items that are to join a conversation, read and checked as the input of a response is."""

import asyncio
from collections.abc import Sequence

from ouzel.responses.context import kept_before, resolved
from ouzel.responses.input_items import PlacedItem, messages_of, placed_items
from ouzel.responses.stored_items import stored_items
from ouzel.store.base import Store
from ouzel.store.records import Item


class NewItems:
    def __init__(self, store: Store, key_id: str | None) -> None:
        self._store = store
        self._key_id = key_id

    async def read(self, given: Sequence[object], *, conversation_id: str | None = None) -> tuple[Item, ...]:
        """As they will be kept; `conversation_id`: of what they follow.

        Raises InvalidRequest for what the model could not be shown, ConversationNotFound, ItemNotFound.
        """
        added = [await resolved(item, self._store, self._key_id) for item in placed_items(given, "items")]
        earlier: Sequence[Item] = ()
        if conversation_id is not None:
            earlier = await self._store.conversation_items(conversation_id, self._key_id)
        return await asyncio.to_thread(_checked, earlier, added)


def _checked(earlier: Sequence[Item], added: Sequence[PlacedItem]) -> tuple[Item, ...]:
    messages_of([*kept_before(earlier, "conversation"), *added], None)  # an output's call may stand in either
    return stored_items(added)
