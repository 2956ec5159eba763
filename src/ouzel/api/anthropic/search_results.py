"""Reads results of web searches that clients send back: their text, and the sources in it."""

import re
from collections.abc import Sequence

from ouzel.api.anthropic.blocks import WebSearchFault, WebSearchHit
from ouzel.responses.hosted.citations import CITE, NO_RESULTS
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
