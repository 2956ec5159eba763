"""Fetches pages whose addresses a conversation has named: Anthropic's tool web_fetch.

The model may fetch only addresses that the user, a tool of the client, a search or an earlier page
has named. Otherwise a hostile page could make it write secrets of the conversation into an address.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta
from msgspec.structs import replace

from ouzel.errors import Overloaded
from ouzel.hosted_tools.web_search.domains import Domains
from ouzel.hosted_tools.web_search.named_urls import NamedUrls
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.records import PageNotAllowed, UnreadablePage, WebError
from ouzel.responses.hosted.citations import Source
from ouzel.responses.hosted.entries import decode_entry
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.responses.hosted.web_fetch import (
    FETCH,
    FetchedPage,
    FetchFault,
    WebFetchCall,
    write_page,
)
from ouzel.responses.hosted.web_search_kind import WebFilters, read_filters
from ouzel.responses.output_items import new_id
from ouzel.wire.offered_tools import ClientName, OfferedTool

_MAX_URL = 250  # characters, as at Anthropic
_CHARS_PER_TOKEN = 4
_MAX_CHARS = 40_000  # characters of a page if the request has no limit
_NOT_NAMED = (
    "The address is not in the conversation. Only addresses that the user, a tool, a search or a "
    "page has named can be fetched."
)


class WebFetchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that the reader of Anthropic's tools writes."""

    type: str
    filters: WebFilters | None = None
    has_citations: bool = False
    max_content_tokens: Annotated[int, Meta(ge=1)] | None = None


class WebFetchKind:
    types = frozenset({FETCH})

    def __init__(self, pages: Pages) -> None:
        """`pages` belong to somebody else, who closes them."""
        self._pages = pages

    def check(self, entry: JsonObject, path: str) -> None:
        read_filters(decode_entry(entry, WebFetchEntry, path).filters, path)

    def show(self, entry: JsonObject) -> JsonObject:
        return entry

    def keep(self, entry: JsonObject) -> JsonObject:
        return entry

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "WebFetch":
        decoded = decode_entry(entry, WebFetchEntry, path)
        named = NamedUrls()
        for item in context.items:
            texts = item.get("named_in")
            for text in texts if isinstance(texts, list) else ():
                named.add_text(str(text))
        return WebFetch(self._pages, decoded, path, named, context.sources)

    async def close(self) -> None:
        pass


class WebFetch:
    first_items: Sequence[AnyHostedItem] = ()
    first_calls: Sequence[AnyHostedItem] = ()

    def __init__(
        self,
        pages: Pages,
        entry: WebFetchEntry,
        path: str,
        named: NamedUrls,
        sources: Mapping[int, Source],
    ) -> None:
        """`named` are the addresses in the conversation, `sources` the pages of searches."""
        self._pages = pages
        self._domains: Domains = read_filters(entry.filters, path)
        self._has_citations = entry.has_citations
        limit = entry.max_content_tokens
        self._max_chars = _MAX_CHARS if limit is None else limit * _CHARS_PER_TOKEN
        self._named = named
        self._sources = sources
        parameters: JsonObject = {
            "type": "object",
            "properties": {"url": {"type": "string"}},
            "required": ["url"],
        }
        offered = OfferedTool(
            ClientName(FETCH),
            path,
            "Returns the readable text of a web page or a PDF, whose address is in the "
            "conversation.",
            parameters,
            hosted_type=entry.type,
        )
        self.functions = [HostedFunction(offered, is_repeatable=True)]

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        item = WebFetchCall(id=new_id(WebFetchCall.id_prefix), status="in_progress", url="")
        try:
            url = _ARGUMENTS.decode(call.arguments or "{}").url.strip()
        except msgspec.MsgspecError as error:
            return _fail(item, "invalid_tool_input", f"The arguments cannot be read: {error}")
        return replace(item, url=url)

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, WebFetchCall)
        if len(item.url) > _MAX_URL:
            fault = f"The address must have <= {_MAX_URL} characters."
            return CallResult(_fail(item, "url_too_long", fault))
        self._named.add(each.url for each in self._sources.values() if isinstance(each.url, str))
        if item.url not in self._named:
            return CallResult(_fail(item, "url_not_in_prior_context", _NOT_NAMED))
        try:
            page = await self._pages.fetch(item.url, self._domains)
        except (Overloaded, WebError) as error:
            return CallResult(_fail(item, _name_fault(error), str(error)))
        self._named.add_text(page.text)
        text = page.text[: self._max_chars]
        now = datetime.now(UTC).isoformat(timespec="seconds")
        number = next(numbers) if self._has_citations else None
        source = [] if number is None else [Source(number=number, title=page.title, url=page.url)]
        ended = replace(
            item,
            status="completed",
            page=FetchedPage(page.url, page.title, text, now),
            output=write_page(page.title, page.url, text, number),
            sources=source or UNSET,
        )
        return CallResult(ended)

    async def close(self) -> None:
        pass


class _Arguments(msgspec.Struct, frozen=True):
    url: Annotated[str, Meta(min_length=1, max_length=100_000)]


_ARGUMENTS = msgspec.json.Decoder(_Arguments)


def _name_fault(error: Overloaded | WebError) -> FetchFault:
    match error:
        case Overloaded():
            return "too_many_requests"
        case PageNotAllowed():
            return "url_not_allowed"
        case UnreadablePage():
            return "unsupported_content_type"
        case _:
            return "url_not_accessible"


def _fail(item: WebFetchCall, fault: FetchFault, reason: str) -> WebFetchCall:
    return replace(item.fail(reason), fault=fault)
