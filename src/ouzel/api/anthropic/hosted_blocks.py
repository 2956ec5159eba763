"""Defines the blocks of tools that this server runs, as answers have them.

    mcp_tool_use ─> mcp_tool_result
    server_tool_use ─> web_search_tool_result, or web_fetch_tool_result

The results of a search carry the text that the model read, packed, so that a later request can
show it again. Anthropic's own are encrypted; such results show only their title and address.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import UnsetType

from ouzel.api.anthropic.search_results import SEARCH_RESULT
from ouzel.responses.hosted.citations import Source, mark_source
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.mcp import McpCall
from ouzel.responses.hosted.web_fetch import FetchFault, WebFetchCall

SearchFault = Literal["invalid_tool_input", "unavailable", "max_uses_exceeded"]


class AnsweredMcpUse(msgspec.Struct, tag="mcp_tool_use"):
    id: str
    name: str
    server_name: str
    input: dict[str, object]


class AnsweredServerUse(msgspec.Struct, tag="server_tool_use"):
    id: str
    name: str
    input: dict[str, object]


class ResultText(msgspec.Struct, tag="text"):
    text: str


class McpResult(msgspec.Struct, tag="mcp_tool_result"):
    tool_use_id: str
    is_error: bool
    content: list[ResultText]


class FoundPage(msgspec.Struct, tag="web_search_result"):
    url: str
    title: str
    encrypted_content: str
    page_age: str | None = None


class SearchError(msgspec.Struct, tag="web_search_tool_result_error"):
    error_code: SearchFault


class SearchResult(msgspec.Struct, tag="web_search_tool_result"):
    tool_use_id: str
    content: list[FoundPage] | SearchError


class PageSource(msgspec.Struct, tag="text"):
    data: str
    media_type: Literal["text/plain"] = "text/plain"


class CitationsSetting(msgspec.Struct):
    enabled: bool


class PageDocument(msgspec.Struct, tag="document"):
    source: PageSource
    title: str | None
    citations: CitationsSetting | None


class FetchedDocument(msgspec.Struct, tag="web_fetch_result"):
    url: str
    content: PageDocument
    retrieved_at: str


class FetchError(msgspec.Struct, tag="web_fetch_tool_result_error"):
    error_code: FetchFault


class FetchResult(msgspec.Struct, tag="web_fetch_tool_result"):
    tool_use_id: str
    content: FetchedDocument | FetchError


class PageCitation(msgspec.Struct, tag="web_search_result_location"):
    url: str
    title: str
    encrypted_index: str
    cited_text: str


HostedUse = AnsweredMcpUse | AnsweredServerUse
HostedResult = McpResult | SearchResult | FetchResult


def make_result(block_id: str, item: AnyHostedItem, *, is_over_limit: bool) -> HostedResult:
    """Returns the result of a call that has ended."""
    exchange = item.exchange()
    text = "" if exchange is None else exchange.output
    if isinstance(item, McpCall):
        return McpResult(block_id, item.is_failed, [ResultText(text)])
    if isinstance(item, WebFetchCall):
        return FetchResult(block_id, _make_fetched(item, is_over_limit=is_over_limit))
    if item.is_failed:
        fault: SearchFault = "max_uses_exceeded" if is_over_limit else "unavailable"
        return SearchResult(block_id, SearchError(fault))
    sources = item.sources if isinstance(item.sources, list) else []
    return SearchResult(block_id, list(_list_pages(text, sources)))


def _make_fetched(item: WebFetchCall, *, is_over_limit: bool) -> FetchedDocument | FetchError:
    if isinstance(item.page, UnsetType):
        return FetchError("max_uses_exceeded" if is_over_limit else item.fault)
    has_citations = isinstance(item.sources, list)
    document = PageDocument(
        PageSource(item.page.text),
        item.page.title,
        CitationsSetting(True) if has_citations else None,
    )
    return FetchedDocument(item.page.url, document, item.page.retrieved_at)


def _list_pages(text: str, sources: Sequence[Source]) -> Iterator[FoundPage]:
    for source, part in _split(text, sources):
        url = source.url if isinstance(source.url, str) else ""
        yield FoundPage(url, source.title, SEARCH_RESULT.pack(part))


def list_texts(item: AnyHostedItem) -> Iterator[tuple[str, str]]:
    """Yields the addresses of the pages that a call has shown, with their extracts."""
    text = item.output if isinstance(item.output, str) else ""
    for source, part in _split(text, item.sources if isinstance(item.sources, list) else []):
        if isinstance(source.url, str):
            heads = (mark_source(source.number), source.title, source.url)
            lines = (line for line in part.splitlines() if not line.startswith(heads))
            yield source.url, "\n".join(lines)


def _split(text: str, sources: Sequence[Source]) -> Iterator[tuple[Source, str]]:
    """Yields the sources with their parts of a text; each part begins with the source's marker."""
    starts = [max(text.find(mark_source(source.number)), 0) for source in sources]
    ends = [*starts[1:], len(text)]
    for source, start, end in zip(sources, starts, ends, strict=False):
        yield source, text[start:end].rstrip()
