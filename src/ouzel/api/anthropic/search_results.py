"""Reads results of searches and fetched pages that clients send back: text and sources."""

import re
from collections.abc import Sequence

from ouzel.api.anthropic.blocks import (
    PlainText,
    WebFetchFault,
    WebFetchPage,
    WebSearchFault,
    WebSearchHit,
)
from ouzel.responses.hosted.citations import CITE, NO_RESULTS
from ouzel.responses.hosted.web_fetch import write_page
from ouzel.responses.items.packed_text import Packing
from ouzel.wire.decode import JsonObject

SEARCH_RESULT = Packing("ouzel-search-1.", b"ouzel-search")
_NUMBER = re.compile(r"【(\d{1,6})】")


def read_search_result(
    content: Sequence[WebSearchHit] | WebSearchFault,
) -> tuple[str, list[JsonObject]]:
    """Returns the text for the model, and the numbered sources as an item of a search has them."""
    if isinstance(content, WebSearchFault):
        return f"The search failed: {content.error_code}.", []
    texts: list[str] = []
    sources: list[JsonObject] = []
    for hit in content:
        text = SEARCH_RESULT.unpack(hit.encrypted_content)
        number = None if text is None else _NUMBER.match(text)
        if number is not None:
            sources.append({"number": int(number[1]), "title": hit.title, "url": hit.url})
        texts.append(f"{hit.title}\n{hit.url}" if text is None else text)
    return "\n\n".join([CITE, *texts]) if texts else NO_RESULTS, sources


def read_fetched_page(
    content: WebFetchPage | WebFetchFault, number: int
) -> tuple[str, list[JsonObject]]:
    """Returns the text for the model, and the page as source `number` if it can be cited."""
    if isinstance(content, WebFetchFault):
        return f"The page could not be fetched: {content.error_code}.", []
    document = content.content
    is_text = isinstance(document.source, PlainText)
    text = document.source.data if isinstance(document.source, PlainText) else ""
    title = document.title or content.url
    citations = document.citations
    is_cited = is_text and isinstance(citations, dict) and citations.get("enabled") is True
    source: JsonObject = {"number": number, "title": title, "url": content.url}
    written = write_page(
        title, content.url, text or "[not shown again]", number if is_cited else None
    )
    return written, [source] if is_cited else []
