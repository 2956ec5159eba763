"""Defines the work of the preparer: a body, and the way to prepare it."""

from collections.abc import Callable
from dataclasses import dataclass

from ouzel.responses.request import ResponsesRequest
from ouzel.responses.stored.recent_responses import RecentResponses
from ouzel.store.records import StoredResponse
from ouzel.wire.decode import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationJob:
    """A body to prepare, and the way to prepare it."""

    parse: Callable[[], JsonObject]
    num_bytes: int
    key_id: str | None
    arrival_s: float
    body: bytes | None = None  # the bytes of the body, if a response in the background needs them
    body_type: type[ResponsesRequest] = ResponsesRequest
    queued: StoredResponse | None = None  # the response that an earlier run of this body has begun
    recent: RecentResponses | None = None  # responses of the connection, which can be continued
    only_counts: bool = False
    generates: bool = True
    is_stream: bool = False
