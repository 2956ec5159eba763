"""Defines the item of a search in files, and its events."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from ouzel.responses.event_base import ItemEvent, Place, ResponseEvent
from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

FUNCTION = "file_search"  # name of the function by which the model calls the tool


class FileSearchResult(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    filename: str
    score: float
    attributes: dict[str, str | float | bool]
    text: str


class FileSearchCall(HostedItem, frozen=True, kw_only=True, tag="file_search_call"):
    id_prefix = "fs"
    kind = "file_search"

    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"]
    queries: list[str]
    results: list[FileSearchResult] | None = None  # only if the request includes them

    @property
    def is_running(self) -> bool:
        return self.status in ("in_progress", "searching")

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def called_name(self) -> tuple[str, str | None]:
        return FUNCTION, None

    def exchange(self) -> ToolExchange | None:
        if not isinstance(self.output, str):
            return None  # another server has run the call and does not tell its result
        # The model has called with one query; items of other servers may have several.
        arguments = {"query": self.queries[0] if len(self.queries) == 1 else self.queries}
        encoded = msgspec.json.encode(arguments).decode()
        return ToolExchange(FUNCTION, None, encoded, self.output)

    def fail(self, reason: str) -> "FileSearchCall":
        return replace(self, status="failed", output=reason)

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield FileSearchInProgress(*place.next())
        yield FileSearchSearching(*place.next())

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield FileSearchCompleted(*place.next())


class FileSearchInProgress(
    ItemEvent, frozen=True, kw_only=True, tag="response.file_search_call.in_progress"
):
    pass


class FileSearchSearching(
    ItemEvent, frozen=True, kw_only=True, tag="response.file_search_call.searching"
):
    pass


class FileSearchCompleted(
    ItemEvent, frozen=True, kw_only=True, tag="response.file_search_call.completed"
):
    pass


EVENTS: tuple[type[ResponseEvent], ...] = (
    FileSearchInProgress,
    FileSearchSearching,
    FileSearchCompleted,
)
