"""Items that are to join a conversation are read and checked as the input of a response is."""

import asyncio
from collections.abc import Sequence

from ouzel.responses.context import read_stored, resolve_reference
from ouzel.responses.input_items import InputItem, input_items_in, messages_of
from ouzel.responses.stored_items import stored_items
from ouzel.store.base import Store
from ouzel.store.records import Item


class NewItems:
    def __init__(self, store: Store, key_id: str | None, *, supports_images: bool) -> None:
        """`supports_images`: the model reads pictures."""
        self._store = store
        self._key_id = key_id
        self._supports_images = supports_images

    async def read(
        self, values: Sequence[object], *, conversation_id: str | None = None
    ) -> tuple[Item, ...]:
        """Returns the items as they will be kept; they follow those of `conversation_id`, where there is one.

        Raises InvalidRequest for what the model could not be shown, ConversationNotFound, ItemNotFound.
        """
        new = [
            await resolve_reference(item, self._store, self._key_id)
            for item in input_items_in(values, "items")
        ]
        earlier: Sequence[Item] = ()
        if conversation_id is not None:
            earlier = await self._store.conversation_items(conversation_id, self._key_id)
        return await asyncio.to_thread(self._checked, earlier, new)

    def _checked(self, earlier: Sequence[Item], new: Sequence[InputItem]) -> tuple[Item, ...]:
        items = [
            *read_stored(earlier, "conversation"),
            *new,
        ]  # an output's call may stand in either
        messages_of(items, None, supports_images=self._supports_images)
        return stored_items(new)
