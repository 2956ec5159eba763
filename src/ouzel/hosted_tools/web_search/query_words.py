"""Writes queries in the words that search engines share, within their limits."""

from ouzel.hosted_tools.web_search.records import Query

_MAX_HITS = 20  # limit of Brave and Tavily
# Brave refuses longer queries.
MAX_CHARS = 400
_MAX_WORDS = 50


def add_sites(query: Query) -> str:
    """Adds the domains to the text, in the words that search engines share.

    Domains that do not fit into a query are left out: the hits are filtered in any case.
    """
    text = " ".join(query.text.split()[:_MAX_WORDS])[:MAX_CHARS]
    sites = " OR ".join(f"site:{domain}" for domain in query.domains.allowed)
    blocked = " ".join(f"-site:{domain}" for domain in query.domains.blocked)
    for terms in (f"({sites})" if sites else "", blocked):
        longer = f"{text} {terms}".strip()
        if len(longer) <= MAX_CHARS and len(longer.split()) <= _MAX_WORDS:
            text = longer
    return text


def count_hits(query: Query) -> int:
    """Returns the number of hits to ask for: more where some may be left out."""
    return _MAX_HITS if query.domains else min(query.num_hits, _MAX_HITS)
