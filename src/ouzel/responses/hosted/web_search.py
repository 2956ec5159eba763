"""Defines the item of a web search, and its events."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ouzel.responses.event_base import ItemEvent, Place, ResponseEvent
from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

SEARCH = "web_search"  # names of the functions by which the model calls the tool
OPEN_PAGE = "open_page"
FIND_IN_PAGE = "find_in_page"


class SearchSource(msgspec.Struct, frozen=True, tag_field="type", tag="url"):
    url: str


class SearchAction(msgspec.Struct, frozen=True, tag_field="type", tag="search"):
    query: str
    queries: list[str]
    sources: list[SearchSource] | UnsetType = UNSET  # only if the request includes them


class OpenPageAction(msgspec.Struct, frozen=True, tag_field="type", tag="open_page"):
    url: str


class FindInPageAction(msgspec.Struct, frozen=True, tag_field="type", tag="find_in_page"):
    url: str
    pattern: str


WebAction = SearchAction | OpenPageAction | FindInPageAction


class WebSearchCall(HostedItem, frozen=True, kw_only=True, tag="web_search_call"):
    id_prefix = "ws"
    kind = "web_search"

    status: Literal["in_progress", "searching", "completed", "failed"]
    action: WebAction

    @property
    def is_running(self) -> bool:
        return self.status in ("in_progress", "searching")

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def called_name(self) -> tuple[str, str | None]:
        return _call(self.action)[0], None

    def exchange(self) -> ToolExchange | None:
        if not isinstance(self.output, str):
            return None  # another server has run the call and does not tell its result
        name, arguments = _call(self.action)
        return ToolExchange(name, None, msgspec.json.encode(arguments).decode(), self.output)

    def fail(self, reason: str) -> "WebSearchCall":
        return replace(self, status="failed", output=reason)

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield WebSearchInProgress(*place.next())
        yield WebSearchSearching(*place.next())

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield WebSearchCompleted(*place.next())


def _call(action: WebAction) -> tuple[str, dict[str, str]]:
    match action:
        case SearchAction(query):
            return SEARCH, {"query": query}
        case OpenPageAction(url):
            return OPEN_PAGE, {"url": url}
        case FindInPageAction(url, pattern):
            return FIND_IN_PAGE, {"url": url, "pattern": pattern}


class WebSearchInProgress(
    ItemEvent, frozen=True, kw_only=True, tag="response.web_search_call.in_progress"
):
    pass


class WebSearchSearching(
    ItemEvent, frozen=True, kw_only=True, tag="response.web_search_call.searching"
):
    pass


class WebSearchCompleted(
    ItemEvent, frozen=True, kw_only=True, tag="response.web_search_call.completed"
):
    pass


EVENTS: tuple[type[ResponseEvent], ...] = (
    WebSearchInProgress,
    WebSearchSearching,
    WebSearchCompleted,
)
