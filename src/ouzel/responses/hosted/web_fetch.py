"""Defines the item of a fetched page, which answers in Anthropic's form show as blocks."""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ouzel.responses.hosted.citations import CITE, mark_source, write_without_markers
from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

FETCH = "web_fetch"  # the name of the function by which the model calls the tool
FetchFault = Literal[
    "invalid_tool_input",
    "url_too_long",
    "url_not_allowed",
    "url_not_in_prior_context",
    "url_not_accessible",
    "unsupported_content_type",
    "too_many_requests",
    "max_uses_exceeded",
    "unavailable",
]


class FetchedPage(msgspec.Struct, frozen=True):
    url: str  # after redirects
    title: str
    text: str  # the part that the model reads
    retrieved_at: str  # ISO 8601


class WebFetchCall(HostedItem, frozen=True, kw_only=True, tag="web_fetch_call"):
    id_prefix = "wf"
    kind = "web_fetch"

    status: Literal["in_progress", "completed", "failed"]
    url: str
    page: FetchedPage | UnsetType = UNSET
    fault: FetchFault = "unavailable"  # the reason of a failed call

    @property
    def is_running(self) -> bool:
        return self.status == "in_progress"

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def called_name(self) -> tuple[str, str | None]:
        return FETCH, None

    def exchange(self) -> ToolExchange | None:
        if not isinstance(self.output, str):
            return None
        arguments = msgspec.json.encode({"url": self.url}).decode()
        return ToolExchange(FETCH, None, arguments, self.output)

    def fail(self, reason: str) -> "WebFetchCall":
        return replace(self, status="failed", output=reason)


def write_page(title: str, url: str, text: str, number: int | None) -> str:
    """Returns a page as the model reads it; `number` is its source's, None without citations."""
    written = write_without_markers(f"{title}\n{url}\n\n{text}")
    return written if number is None else f"{CITE}\n\n{mark_source(number)} {written}"
