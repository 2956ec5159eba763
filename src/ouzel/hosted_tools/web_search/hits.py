"""Reads the hits in the answers of search engines, which may contain anything."""

import html
import re
from collections.abc import Iterable

from ouzel.hosted_tools.web_search.records import Query, SearchHit

_MAX_SNIPPET = 2000  # characters
_MAX_TITLE = 300
_MAX_DATE = 40
_EMPHASIS = re.compile(r"</?(?:b|strong|em|i|mark)>")  # around the words of the query


def read_hits(
    found: object, query: Query, *, snippet: str, dates: Iterable[str], url: str = "url"
) -> list[SearchHit]:
    """Reads the list of an answer.

    `snippet`, `dates` and `url` name fields of the entries; the first date that is present counts.
    Entries without a web address, outside the domains, or with an earlier address are left out.
    """
    hits: dict[str, SearchHit] = {}
    for each in found if isinstance(found, list) else []:
        if not isinstance(each, dict):
            continue
        address = each.get(url)
        if not isinstance(address, str) or not query.domains.permit(address):
            continue
        published = [each[name] for name in dates if isinstance(each.get(name), str)]
        hit = SearchHit(
            _clean(each.get("title"))[:_MAX_TITLE] or address,
            address,
            _clean(each.get(snippet))[:_MAX_SNIPPET],
            published[0][:_MAX_DATE] if published else None,
        )
        hits.setdefault(address, hit)
    return list(hits.values())[: query.num_hits]


def _clean(text: object) -> str:
    """Returns the text of a field without emphasis, entities of HTML and runs of spaces."""
    if not isinstance(text, str):
        return ""
    return " ".join(html.unescape(_EMPHASIS.sub("", text)).split())
