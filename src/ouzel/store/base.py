"""The rest of Ouzel knows this much of a store. Importing it loads no database library.

What a method reads or changes, it does in one transaction; `sweep` alone takes many short ones, so that others come
between. Every method but `close` raises StoreUnavailable while the database cannot be used. Of everything that carries
a `key_id`, one key never sees, changes or deletes what belongs to another: for the wrong key such a thing is not there.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from ouzel.store.records import (
    Item,
    NewResponse,
    Page,
    PageRequest,
    Progress,
    StoredConversation,
    StoredResponse,
)


class Store(Protocol):
    """Keeps responses and conversations with their items; several servers may share what it keeps."""

    async def close(self) -> None:
        """Ends this server's lease too, which abandons what it still runs. A second call does nothing."""
        ...

    # Responses

    async def add_response(self, new: NewResponse, output_items: Sequence[Item] = ()) -> None:
        """Adds a response, which locks its conversation until it ends. Raises ConversationNotFound, ConversationLocked.

        Only a response that has ended already has `output_items`; such a one can be in no conversation.
        """
        ...

    async def record(self, response_id: str, progress: Progress, *, first_event: int) -> bool:
        """Moves a response on, whichever server runs it, and makes it this server's.

        Returns False, with nothing changed, unless the response goes on and has exactly `first_event` events.

        With a final status the output items are kept, the request is dropped and the conversation is unlocked. The
        conversation gets input and output of a response that is completed or incomplete.
        """
        ...

    async def response(self, response_id: str, key_id: str | None) -> StoredResponse | None:
        """Returns the response, or None where the key has none with this id."""
        ...

    async def delete_response(self, response_id: str, key_id: str | None) -> bool:
        """Returns whether it was there. One that goes on is deleted too; `record` then refuses what comes of it."""
        ...

    async def history(self, response_id: str, key_id: str | None) -> list[Item]:
        """Returns what a response that continues this one begins with. Raises ResponseNotFound, HistoryLost."""
        ...

    async def input_items(
        self, response_id: str, key_id: str | None, page: PageRequest
    ) -> Page | None:
        """Returns a page of a response's history and its own input, or None where there is no such response.

        Raises HistoryLost, and ItemNotFound for an unknown `after`.
        """
        ...

    async def item(self, item_id: str, key_id: str | None) -> Item | None:
        """Finds an item of any response or conversation of the key."""
        ...

    async def events(
        self, response_id: str, key_id: str | None, *, after: int
    ) -> tuple[bytes, ...]:
        """Returns the events that are numbered above `after`; -1 stands for all."""
        ...

    # Several servers, and restarts

    async def beat(self) -> None:
        """Renews this server's lease; it is to be called several times in that time while a response runs here."""
        ...

    async def take_abandoned(self) -> list[StoredResponse]:
        """Makes this server's what is in progress without a living owner, or is queued without a request to run."""
        ...

    async def take_queued(self, models: Sequence[str], limit: int) -> list[StoredResponse]:
        """Makes this server's what is queued for one of `models` without a living owner, oldest first."""
        ...

    async def release(self, ids: Collection[str]) -> None:
        """Lets any server take these responses of this one, which go on, but not here any more."""
        ...

    async def ended(self, ids: Collection[str]) -> set[str]:
        """Returns those of the responses that have a final status or are gone."""
        ...

    async def sweep(self) -> int:
        """Deletes what was not used for too long or is too much, and says how many; beats while it is at it."""
        ...

    # Conversations

    async def create_conversation(
        self,
        conversation_id: str,
        key_id: str | None,
        metadata: dict[str, str],
        items: Sequence[Item],
    ) -> StoredConversation: ...

    async def conversation(
        self, conversation_id: str, key_id: str | None
    ) -> StoredConversation | None:
        """Returns the conversation, or None where the key has none with this id."""
        ...

    async def update_conversation(
        self, conversation_id: str, key_id: str | None, metadata: dict[str, str]
    ) -> StoredConversation | None:
        """Replaces the metadata; returns None where the key has no such conversation."""
        ...

    async def delete_conversation(self, conversation_id: str, key_id: str | None) -> bool:
        """Deletes it with its items and returns whether it was there.

        Responses that were made in it keep theirs, but can no longer be continued.
        """
        ...

    async def conversation_items(self, conversation_id: str, key_id: str | None) -> list[Item]:
        """Returns all items in order. Raises ConversationNotFound."""
        ...

    async def conversation_page(
        self, conversation_id: str, key_id: str | None, page: PageRequest
    ) -> Page:
        """Raises ConversationNotFound, and ItemNotFound for an unknown `after`."""
        ...

    async def conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> Item | None:
        """Raises ConversationNotFound."""
        ...

    async def add_conversation_items(
        self, conversation_id: str, key_id: str | None, items: Sequence[Item]
    ) -> None:
        """Adds items at the end. Raises ConversationNotFound; ConversationLocked while a response is made in it."""
        ...

    async def delete_conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> bool:
        """Returns False where it has no such item. Raises ConversationNotFound."""
        ...
