"""Defines the bodies and the answers of /conversations."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.responses.items.input_schema import Items
from ouzel.store.records import StoredConversation
from ouzel.wire.fields import Labels

Metadata = Annotated[Labels, Meta(description="Labels of the conversation.")]
NewItems = Annotated[
    Items, Meta(max_length=20, description="Messages, function calls and their outputs, reasoning.")
]


class CreateConversationRequest(msgspec.Struct, kw_only=True):
    items: NewItems | None = None
    metadata: Metadata | None = None


class UpdateConversationRequest(msgspec.Struct, kw_only=True):
    metadata: Annotated[
        Labels | None,
        Meta(description="Replaces the labels of the conversation; null removes them."),
    ]


class CreateItemsRequest(msgspec.Struct, kw_only=True):
    items: NewItems


class Conversation(msgspec.Struct, frozen=True, tag_field="object", tag="conversation"):
    id: str
    created_at: int
    metadata: dict[str, str]

    @classmethod
    def of(cls, stored: StoredConversation) -> "Conversation":
        return cls(stored.id, stored.created_at, stored.metadata)


class DeletedConversation(
    msgspec.Struct, frozen=True, tag_field="object", tag="conversation.deleted"
):
    id: str
    deleted: bool = True
