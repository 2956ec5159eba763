"""Defines the interface of stored chat completions; importing it loads no database library.

The rules of `store.base` hold: each method is one transaction, every method may raise
StoreUnavailable, and the completions of another API key do not exist.
"""

from typing import Protocol

from ouzel.store.chats.records import ChatFilter, ChatPage, NewChat, StoredChat
from ouzel.store.records import Page, PageRequest


class ChatStore(Protocol):
    async def add(self, new: NewChat) -> None: ...

    async def get(self, chat_id: str, key_id: str | None) -> StoredChat | None:
        """Returns the completion, or None if the API key has no completion with this id."""
        ...

    async def page(self, key_id: str | None, chosen: ChatFilter, page: PageRequest) -> ChatPage:
        """Returns a page of the completions, in the order of storing.

        Raises ChatNotFound for an unknown `after`.
        """
        ...

    async def messages(self, chat_id: str, key_id: str | None, page: PageRequest) -> Page:
        """Returns a page of the messages. Raises ChatNotFound, and ItemNotFound for `after`."""
        ...

    async def update(
        self, chat_id: str, key_id: str | None, metadata: dict[str, str]
    ) -> StoredChat | None:
        """Replaces the metadata; returns None where the key has no such completion."""
        ...

    async def delete(self, chat_id: str, key_id: str | None) -> bool:
        """Deletes a completion with its messages, and returns whether it existed."""
        ...
