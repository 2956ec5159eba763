"""Defines the interface of the store; importing it loads no database library.

Objects of other kinds than responses and conversations are in stores of their own, such as `chats`.

1.  Each method is one transaction. Only `sweep` makes many short ones, so that other transactions
    run in between.
2.  Every method except `close` raises StoreUnavailable while the database cannot be used.
3.  A key never sees, changes or deletes the responses, conversations and items of another key:
    for the wrong key they do not exist.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

from ouzel.store.batches.base import BatchStore
from ouzel.store.chats.base import ChatStore
from ouzel.store.files.base import FileStore
from ouzel.store.records import (
    Item,
    NewResponse,
    Page,
    PageRequest,
    Progress,
    StoredConversation,
    StoredResponse,
)
from ouzel.store.uploads.base import UploadStore
from ouzel.store.vector_stores.base import VectorStores


class Store(Protocol):
    """Stores responses and conversations with their items; several servers may share one store."""

    @property
    def batches(self) -> BatchStore:
        """Returns the stored batches."""
        ...

    @property
    def files(self) -> FileStore:
        """Returns the store of files."""
        ...

    @property
    def uploads(self) -> UploadStore:
        """Returns the uploads in parts."""
        ...

    @property
    def chats(self) -> ChatStore:
        """Returns the stored chat completions."""
        ...

    @property
    def vector_stores(self) -> VectorStores:
        """Returns the stored vector stores."""
        ...

    async def close(self) -> None:
        """Ends the lease of this server and closes the database; a second call does nothing.

        Responses that this server still runs are thereby abandoned.
        """
        ...

    # Responses

    async def add_response(self, new: NewResponse, output_items: Sequence[Item] = ()) -> None:
        """Adds a response; it locks its conversation until it ends.

        Only a response that has already ended has `output_items`, and it has no conversation.
        Raises ConversationNotFound or ConversationLocked.
        """
        ...

    async def record(self, response_id: str, progress: Progress, *, first_event: int) -> bool:
        """Writes progress of a response and makes this server its owner.

        Returns False and changes nothing if the response has ended or was deleted, or if its number
        of events is not `first_event`.

        A final status stores the output items, drops the request and unlocks the conversation. The
        input and output of a completed or incomplete response are added to the conversation.
        """
        ...

    async def response(self, response_id: str, key_id: str | None) -> StoredResponse | None:
        """Returns the response, or None if the API key has no response with this id."""
        ...

    async def delete_response(self, response_id: str, key_id: str | None) -> bool:
        """Deletes a response, also a running one; returns whether the response existed.

        Later calls of `record` for a deleted response return False.
        """
        ...

    async def history(self, response_id: str, key_id: str | None) -> list[Item]:
        """Returns the items with which a response that continues this one begins.

        Raises ResponseNotFound, or HistoryLost if an earlier response or conversation was deleted.
        """
        ...

    async def input_items(
        self, response_id: str, key_id: str | None, page: PageRequest
    ) -> Page | None:
        """Returns a page of the history and the own input of a response; None if it does not exist.

        Raises HistoryLost, and ItemNotFound for an unknown `after`.
        """
        ...

    async def item(self, item_id: str, key_id: str | None) -> Item | None:
        """Finds an item of any response or conversation of the key."""
        ...

    async def events(
        self, response_id: str, key_id: str | None, *, after: int
    ) -> tuple[bytes, ...]:
        """Returns the events numbered above `after`; -1 returns all events."""
        ...

    # Several servers, and restarts

    async def beat(self) -> None:
        """Renews the lease of this server.

        While a response runs here, it must be called several times within the time of a lease.
        """
        ...

    async def take_abandoned(self) -> list[StoredResponse]:
        """Takes the responses in progress whose owner has no lease, and owns them.

        Queued responses without a stored request are taken too, because no server can run them.
        """
        ...

    async def take_queued(self, models: Sequence[str], limit: int) -> list[StoredResponse]:
        """Takes queued responses of `models` whose owner has no lease, the oldest first."""
        ...

    async def release(self, ids: Collection[str]) -> None:
        """Gives up the ownership of unfinished responses, so that any server can take them."""
        ...

    async def ended(self, ids: Collection[str]) -> set[str]:
        """Returns the ids of the responses that have a final status or were deleted."""
        ...

    async def sweep(self) -> int:
        """Deletes responses, conversations and chats that are too old, or exceed the size limit.

        Files go when they expire.

        Returns the number of deletions. Renews the lease meanwhile.
        """
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
        """Deletes a conversation with its items and returns whether it existed.

        Responses that were made in the conversation stay, but can no longer be continued.
        """
        ...

    async def conversation_items(self, conversation_id: str, key_id: str | None) -> list[Item]:
        """Returns all items in order. Raises ConversationNotFound."""
        ...

    async def conversation_page(
        self, conversation_id: str, key_id: str | None, page: PageRequest
    ) -> Page:
        """Returns a page of the items.

        Raises ConversationNotFound, and ItemNotFound for an unknown `after`.
        """
        ...

    async def conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> Item | None:
        """Returns one item; None if the conversation lacks it. Raises ConversationNotFound."""
        ...

    async def add_conversation_items(
        self, conversation_id: str, key_id: str | None, items: Sequence[Item]
    ) -> None:
        """Adds items at the end of a conversation.

        Raises ConversationNotFound, or ConversationLocked while a response is made in the
        conversation.
        """
        ...

    async def delete_conversation_item(
        self, conversation_id: str, key_id: str | None, item_id: str
    ) -> bool:
        """Deletes one item; returns False if it does not exist. Raises ConversationNotFound."""
        ...
