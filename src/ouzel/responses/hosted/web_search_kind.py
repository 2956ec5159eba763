"""Searches the web and opens pages: entries of `tools` with the type `web_search` and its likes."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ouzel.config.media_hosts import InvalidHost
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.web_search.domains import EVERY_DOMAIN, Domains, read_domain, read_domains
from ouzel.hosted_tools.web_search.found_text import find_in_text
from ouzel.hosted_tools.web_search.pages import Pages
from ouzel.hosted_tools.web_search.records import (
    ContextSize,
    Query,
    SearchHit,
    SearchProvider,
    WebPage,
)
from ouzel.responses.hosted.citations import (
    CITE,
    NO_RESULTS,
    Source,
    mark_source,
    write_without_markers,
)
from ouzel.responses.hosted.entries import decode_entry
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import (
    CallResult,
    HostedFunction,
    JsonObject,
    ModelCall,
    OpeningContext,
)
from ouzel.responses.hosted.web_search import (
    FIND_IN_PAGE,
    OPEN_PAGE,
    SEARCH,
    FindInPageAction,
    OpenPageAction,
    SearchAction,
    SearchSource,
    WebAction,
    WebSearchCall,
)
from ouzel.responses.output_items import new_id
from ouzel.wire.offered_tools import ClientName, OfferedTool

_NUM_HITS: dict[ContextSize, int] = {"low": 3, "medium": 5, "high": 10}
_MAX_PAGE: dict[ContextSize, int] = {"low": 5_000, "medium": 15_000, "high": 40_000}  # characters
_MAX_PAGES = 4  # pages in memory for each response
_SOURCES = "web_search_call.action.sources"
_TEXT: JsonObject = {"type": "string"}


class WebFilters(msgspec.Struct, frozen=True):
    allowed_domains: Annotated[list[str], Meta(max_length=100)] | None = None
    blocked_domains: Annotated[list[str], Meta(max_length=100)] | None = None


class UserLocation(msgspec.Struct, frozen=True):
    type: Literal["approximate"] = "approximate"
    country: Annotated[str, Meta(pattern="^[A-Za-z]{2}$")] | None = None
    city: str | None = None
    region: str | None = None
    timezone: str | None = None


class WebSearchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `tools` for searches in the web."""

    type: str
    filters: WebFilters | None = None
    user_location: UserLocation | None = None
    search_context_size: ContextSize | None = None
    # False: pages are not fetched; the model reads the texts that the search engine returns
    external_web_access: bool | None = None
    search_content_types: list[Literal["text"]] | None = None  # OpenAI has images too

    @property
    def size(self) -> ContextSize:
        return self.search_context_size or "medium"

    def read_domains(self, path: str) -> Domains:
        """Returns the domains of the filters. Raises InvalidRequest."""
        return read_filters(self.filters, path)


class WebSearchKind:
    types = frozenset(
        {
            "web_search",
            "web_search_2025_08_26",
            "web_search_preview",
            "web_search_preview_2025_03_11",
        }
    )

    def __init__(self, provider: SearchProvider, pages: Pages | None) -> None:
        """`pages` is None if pages are not fetched."""
        self._provider = provider
        self._pages = pages

    def check(self, entry: JsonObject, path: str) -> None:
        decode_entry(entry, WebSearchEntry, path).read_domains(path)

    def show(self, entry: JsonObject) -> JsonObject:
        return entry

    def keep(self, entry: JsonObject) -> JsonObject:
        return entry

    async def open(self, entry: JsonObject, path: str, context: OpeningContext) -> "WebSearch":
        decoded = decode_entry(entry, WebSearchEntry, path)
        pages = None if decoded.external_web_access is False else self._pages
        shows_sources = _SOURCES in context.include
        return WebSearch(self._provider, pages, decoded, path, shows_sources=shows_sources)

    async def close(self) -> None:
        if self._pages is not None:
            self._pages.close()


class WebSearch:
    first_items: Sequence[AnyHostedItem] = ()
    first_calls: Sequence[AnyHostedItem] = ()

    def __init__(
        self,
        provider: SearchProvider,
        pages: Pages | None,
        entry: WebSearchEntry,
        path: str,
        *,
        shows_sources: bool,
    ) -> None:
        self._provider = provider
        self._pages = pages
        self._entry = entry
        self._domains = entry.read_domains(path)
        self._shows_sources = shows_sources
        self._fetched: dict[str, WebPage] = {}
        offered = [_offer_search(entry, path)]
        if pages is not None:
            offered += _offer_pages(entry, path)
        self.functions = [HostedFunction(each, is_repeatable=True) for each in offered]

    def begin_call(self, call: ModelCall) -> AnyHostedItem:
        item = WebSearchCall(
            id=new_id(WebSearchCall.id_prefix), status="in_progress", action=SearchAction("", [])
        )
        try:
            return replace(item, action=_read_action(call))
        except InvalidRequest as error:
            return item.fail(str(error))

    async def run(self, item: AnyHostedItem, numbers: Iterator[int]) -> CallResult:
        assert isinstance(item, WebSearchCall)
        match item.action:
            case SearchAction(text):
                return CallResult(await self._search(item, text, numbers))
            case OpenPageAction(url):
                page = await self._fetch(url)
                text = _shorten(page.text, _MAX_PAGE[self._entry.size])
                return CallResult(_end_with_page(item, page, text, next(numbers)))
            case FindInPageAction(url, pattern):
                page = await self._fetch(url)
                text = await asyncio.to_thread(find_in_text, page.text, pattern)
                return CallResult(_end_with_page(item, page, text, next(numbers)))

    async def close(self) -> None:
        pass

    async def _search(
        self, item: WebSearchCall, text: str, numbers: Iterator[int]
    ) -> WebSearchCall:
        location = self._entry.user_location
        query = Query(
            text,
            _NUM_HITS[self._entry.size],
            country=None if location is None else location.country,
            domains=self._domains,
        )
        hits = await self._provider.search(query)
        sources = [Source(number=next(numbers), title=hit.title, url=hit.url) for hit in hits]
        action = item.action
        if self._shows_sources and isinstance(action, SearchAction):
            action = replace(action, sources=[SearchSource(hit.url) for hit in hits])
        entries = [_write_hit(hit, source) for hit, source in zip(hits, sources, strict=True)]
        output = "\n\n".join([CITE, *entries]) if hits else NO_RESULTS
        return replace(item, status="completed", action=action, output=output, sources=sources)

    async def _fetch(self, url: str) -> WebPage:
        assert self._pages is not None
        page = self._fetched.pop(url, None) or await self._pages.fetch(url, self._domains)
        self._fetched[url] = page
        if len(self._fetched) > _MAX_PAGES:
            del self._fetched[next(iter(self._fetched))]
        return page


class _Arguments(msgspec.Struct, frozen=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None
    url: Annotated[str, Meta(min_length=1, max_length=4000)] | None = None
    pattern: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


_ARGUMENTS = msgspec.json.Decoder(_Arguments)


def _read_action(call: ModelCall) -> WebAction:
    """Reads the arguments of a call. Raises InvalidRequest, whose text is for the model."""
    try:
        arguments = _ARGUMENTS.decode(call.arguments or "{}")
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"The arguments cannot be read: {error}") from None
    match call.name.name, arguments:
        case "web_search", _Arguments(query=str(query)):
            return SearchAction(query, [query])
        case "open_page", _Arguments(url=str(url)):
            return OpenPageAction(url)
        case "find_in_page", _Arguments(url=str(url), pattern=str(pattern)):
            return FindInPageAction(url, pattern)
        case _:
            raise InvalidRequest("An argument is missing.")


def _write_hit(hit: SearchHit, source: Source) -> str:
    date = "" if hit.published is None else f" ({hit.published})"
    text = write_without_markers(f"{hit.title}{date}\n{hit.url}\n{hit.snippet}")
    return f"{mark_source(source.number)} {text}"


def _end_with_page(item: WebSearchCall, page: WebPage, text: str, number: int) -> WebSearchCall:
    source = Source(number=number, title=page.title, url=page.url)
    text = write_without_markers(f"{page.title}\n{page.url}\n\n{text}")
    output = f"{CITE}\n\n{mark_source(number)} {text}"
    return replace(item, status="completed", output=output, sources=[source])


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text or "The page has no readable text."
    num_left = len(text) - limit
    return (
        f"{text[:limit]}\n[The rest of the page, at least {num_left} characters, is left out. "
        f"{FIND_IN_PAGE} searches the whole page.]"
    )


def read_filters(filters: WebFilters | None, path: str) -> Domains:
    """Returns the domains of the filters of an entry. Raises InvalidRequest."""
    if filters is None:
        return EVERY_DOMAIN
    _check_domains(filters.allowed_domains, f"{path}.filters.allowed_domains")
    _check_domains(filters.blocked_domains, f"{path}.filters.blocked_domains")
    return read_domains(filters.allowed_domains or (), filters.blocked_domains or ())


def _check_domains(listed: list[str] | None, path: str) -> None:
    for number, text in enumerate(listed or ()):
        try:
            read_domain(text)
        except InvalidHost as error:
            raise InvalidRequest(
                f"must be a domain like example.org: {text[:100]!r} {error}",
                field=f"{path}[{number}]",
            ) from None


def _offer_search(entry: WebSearchEntry, path: str) -> OfferedTool:
    place = ""
    if entry.user_location is not None:
        location = entry.user_location
        parts = [location.city, location.region, location.country, location.timezone]
        named = ", ".join(part for part in parts if part)
        place = f" The user is near {named}." if named else ""
    return OfferedTool(
        ClientName(SEARCH),
        path,
        f"Searches the web and returns titles, addresses and extracts of pages.{place}",
        {"type": "object", "properties": {"query": _TEXT}, "required": ["query"]},
        hosted_type=entry.type,
    )


def _offer_pages(entry: WebSearchEntry, path: str) -> list[OfferedTool]:
    return [
        OfferedTool(
            ClientName(OPEN_PAGE),
            path,
            "Returns the readable text of a web page.",
            {"type": "object", "properties": {"url": _TEXT}, "required": ["url"]},
            hosted_type=entry.type,
        ),
        OfferedTool(
            ClientName(FIND_IN_PAGE),
            path,
            "Returns the places of a web page that contain a text.",
            {
                "type": "object",
                "properties": {"url": _TEXT, "pattern": _TEXT},
                "required": ["url", "pattern"],
            },
            hosted_type=entry.type,
        ),
    ]
