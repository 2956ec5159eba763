"""These records go into the store and come out of it. Objects of the API are bytes: JSON that the store never reads."""

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """A response goes on with one of the first two; with any other it never changes again."""

    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (Status.QUEUED, Status.IN_PROGRESS)


class Item(msgspec.Struct, frozen=True):
    """It belongs to a response, as input or as output, or to a conversation."""

    id: str
    body: bytes  # JSON, the id in it


class NewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response begins as this; the server that adds it owns it."""

    id: str
    key_id: str | None  # of the API key it belongs to; None where none is asked for
    model: str  # the first served model name
    status: Status
    is_background: bool
    previous_response_id: str | None
    conversation_id: str | None
    body: bytes  # the response as the API shows it
    request: (
        bytes | None
    )  # the body of the request, of one that may have to run again; kept until the end
    # the id, "" where the conversation had no item; None: whichever it was
    last_item_read: str | None = None
    input_items: tuple[Item, ...]  # of this request alone, without what it continues
    events: tuple[bytes, ...]  # numbered from 0


class StoredResponse(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    key_id: str | None
    model: str
    status: Status
    is_background: bool
    previous_response_id: str | None
    conversation_id: str | None
    body: bytes
    request: bytes | None
    num_events: int  # recorded


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """It says what is new of a response that goes on or ends."""

    status: Status
    body: bytes
    events: tuple[bytes, ...]  # those that follow the ones recorded
    output_items: tuple[Item, ...] = ()  # all of them, at the end


class Page(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    has_more: bool


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    limit: int
    is_ascending: bool
    after: str | None = None  # the id of the item before the first


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    created_at: int  # unix seconds
    metadata: dict[str, str]
