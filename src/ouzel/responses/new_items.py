"""Reads and checks the items that a client adds to a conversation, like the input of a response."""

import asyncio
from collections.abc import Sequence
from functools import partial

from ouzel.generation import ReadableMedia
from ouzel.responses.context import read_stored, resolve_reference
from ouzel.responses.input_items import InputItem, read_items, read_messages
from ouzel.responses.stored_items import stored_items
from ouzel.store.base import Store
from ouzel.store.records import Item
from ouzel.worker_threads import run_with_prerequisite


class NewItems:
    def __init__(self, store: Store, key_id: str | None, *, readable: ReadableMedia) -> None:
        """`readable` tells which kinds of media the model reads."""
        self._store = store
        self._key_id = key_id
        self._readable = readable

    async def read(
        self, values: Sequence[object], *, conversation_id: str | None = None
    ) -> tuple[Item, ...]:
        """Returns the items in the form that the store gets.

        The items are checked together with the items that the conversation already has, if
        `conversation_id` is given. Raises InvalidRequest for an item that cannot be shown to the
        model, ConversationNotFound or ItemNotFound.
        """
        new = [
            await resolve_reference(item, self._store, self._key_id)
            for item in read_items(values, "items")
        ]
        earlier: Sequence[Item] = ()
        if conversation_id is not None:
            earlier = await self._store.conversation_items(conversation_id, self._key_id)
        check = partial(asyncio.to_thread, self._checked, earlier, new)
        return await run_with_prerequisite(check)

    def _checked(self, earlier: Sequence[Item], new: Sequence[InputItem]) -> tuple[Item, ...]:
        # The call of a new output may be among the earlier items.
        items = [*read_stored(earlier, "conversation"), *new]
        read_messages(items, None, readable=self._readable)
        return stored_items(new)
