"""Asks search engines: SearXNG, Brave and Tavily, each by its JSON API.

SearXNG: https://docs.searxng.org/dev/search_api.html (its settings must allow `format=json`).
Brave: https://api-dashboard.search.brave.com/app/documentation/web-search
Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from ouzel.hosted_tools.web_search.ddgs_search import Ddgs
from ouzel.hosted_tools.web_search.hits import read_hits
from ouzel.hosted_tools.web_search.query_words import MAX_CHARS, add_sites, count_hits
from ouzel.hosted_tools.web_search.records import Query, SearchHit, SearchProvider, WebError
from ouzel.hosted_tools.web_search.search_client import SearchClient

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
TAVILY_URL = "https://api.tavily.com/search"
_BRAVE_COUNTRIES = (
    "AR AU AT BE BR CA CL CN DE DK ES FI FR GB HK ID IN IT JP KR MX MY NL NO NZ PH PL PT RU SA SE "
    "CH TR TW US ZA"
)


class SearXng:
    def __init__(self, url: str, *, timeout_s: float) -> None:
        """`url` is the address of the instance, with or without `/search`."""
        base = url.rstrip("/")
        self._client = SearchClient(
            base if base.endswith("/search") else f"{base}/search", timeout_s=timeout_s
        )

    async def search(self, query: Query) -> list[SearchHit]:
        answer = await self._client.ask(params={"q": add_sites(query), "format": "json"})
        found = answer.get("results")
        if not found and (silent := answer.get("unresponsive_engines")):
            raise WebError(f"the engines of SearXNG gave no answer: {str(silent)[:300]}")
        return read_hits(found, query, snippet="content", dates=["publishedDate"])


class Brave:
    def __init__(self, key: str, *, url: str = BRAVE_URL, timeout_s: float) -> None:
        self._client = SearchClient(url, timeout_s=timeout_s)
        self._key = key

    async def search(self, query: Query) -> list[SearchHit]:
        params: dict[str, str | int] = {
            "q": add_sites(query),
            "count": count_hits(query),
            "result_filter": "web",
            "text_decorations": "false",
        }
        if query.country is not None and query.country.upper() in _BRAVE_COUNTRIES.split():
            params["country"] = query.country.upper()
        headers = {"X-Subscription-Token": self._key, "Accept": "application/json"}
        answer = await self._client.ask(params=params, headers=headers)
        web = answer.get("web")
        found = web.get("results") if isinstance(web, dict) else None
        return read_hits(found, query, snippet="description", dates=["page_age", "age"])


class Tavily:
    def __init__(self, key: str, *, url: str = TAVILY_URL, timeout_s: float) -> None:
        self._client = SearchClient(url, timeout_s=timeout_s)
        self._key = key

    async def search(self, query: Query) -> list[SearchHit]:
        body: dict[str, object] = {
            "query": query.text[:MAX_CHARS],
            "max_results": count_hits(query),
        }
        if query.domains.allowed:
            body["include_domains"] = list(query.domains.allowed)
        if query.domains.blocked:
            body["exclude_domains"] = list(query.domains.blocked)
        headers = {"Authorization": f"Bearer {self._key}"}
        answer = await self._client.ask(headers=headers, body=body)
        return read_hits(answer.get("results"), query, snippet="content", dates=["published_date"])


def make_provider(name: str, url: str, key: str, *, timeout_s: float) -> SearchProvider:
    """Makes the provider of the options.

    Raises ValueError if an option is missing, or has no effect.
    """
    if key and name in ("searxng", "ddgs"):
        raise ValueError(f"web_search_key: must not be given for {name}, which has no keys")
    if name == "ddgs":
        if url:
            raise ValueError("web_search_url: must not be given for ddgs, which has its own list")
        return Ddgs(timeout_s=timeout_s)
    if name == "searxng":
        if not url:
            raise ValueError("web_search_url: is required for searxng")
        return SearXng(url, timeout_s=timeout_s)
    if not key:
        raise ValueError(f"web_search_key: is required for {name}")
    if name == "brave":
        return Brave(key, url=url or BRAVE_URL, timeout_s=timeout_s)
    return Tavily(key, url=url or TAVILY_URL, timeout_s=timeout_s)
