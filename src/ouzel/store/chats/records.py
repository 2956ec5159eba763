"""Defines the records of stored chat completions; their bodies are JSON that the store never reads.

A body lacks the metadata, which can change.
"""

from collections.abc import Mapping

import msgspec

from ouzel.store.records import Item


class NewChat(msgspec.Struct, frozen=True, kw_only=True):
    """A finished chat completion to add to the store."""

    id: str
    key_id: str | None  # the API key that owns it; None on a server without keys
    model: str  # the first served model name
    metadata: dict[str, str]
    body: bytes
    messages: tuple[Item, ...]  # the messages of the request


class StoredChat(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    metadata: dict[str, str]
    body: bytes


class ChatPage(msgspec.Struct, frozen=True):
    chats: tuple[StoredChat, ...]
    has_more: bool


class ChatFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Chooses the completions of one model, and of these the completions with all the labels."""

    model: str | None = None  # None: every model
    labels: Mapping[str, str] = {}
