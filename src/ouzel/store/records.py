"""Defines the records that the store takes and returns.

Objects of the API are bytes in these records: JSON that the store never reads.
"""

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """The status of a response. QUEUED and IN_PROGRESS are unfinished; all others are final."""

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
    """An item belongs to a response, as input or as output, or to a conversation."""

    id: str
    body: bytes  # JSON with the id in it


class NewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to add to the store; the server that adds the response owns it."""

    id: str
    key_id: str | None  # the API key that owns the response; None on a server without keys
    model: str  # the first served model name
    status: Status
    is_background: bool
    previous_response_id: str | None
    conversation_id: str | None
    body: bytes  # the response as the API shows it
    # The body of the request, if the response may have to run again; it is dropped at the end.
    request: bytes | None
    # Id of the last item of the conversation when it was read, "" if it had no item. None: any.
    last_item_read: str | None = None
    input_items: tuple[Item, ...]  # the items of this request, without its history
    events: tuple[bytes, ...]  # the first events; the numbers begin at 0


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
    num_events: int  # number of stored events


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an unfinished response, or its end."""

    status: Status
    body: bytes
    events: tuple[bytes, ...]  # the events after the stored ones
    output_items: tuple[Item, ...] = ()  # all output items, only with a final status


class Page(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    has_more: bool


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    limit: int
    is_ascending: bool
    after: str | None = None  # the page begins behind the item with this id


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    created_at: int  # unix seconds
    metadata: dict[str, str]
