"""Asks search engines: SearXNG, Brave and Tavily, each by its JSON API.

SearXNG: https://docs.searxng.org/dev/search_api.html (its settings must allow `format=json`).
Brave: https://api-dashboard.search.brave.com/app/documentation/web-search
Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any  # Any: JSON of other servers
from urllib.parse import urlsplit

import msgspec

from ouzel.config.media_hosts import AllowedHosts
from ouzel.hosted_tools.web_search.records import Query, SearchHit, SearchProvider, WebError
from ouzel.outbound.trusted import trust_host

if TYPE_CHECKING:
    import httpx2

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
TAVILY_URL = "https://api.tavily.com/search"
_OPTION = "web_search_url"
_MAX_ANSWER_BYTES = 4 * 2**20
_MAX_SNIPPET = 2000  # characters
_MAX_TITLE = 300


class SearchClient:
    """Sends requests to one configured address."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self.url = url
        self._allowed: AllowedHosts = trust_host(url, _OPTION)
        self._timeout_s = timeout_s

    async def ask(
        self,
        *,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> dict[str, Any]:
        """Returns the JSON object of an answer. Raises WebError."""
        import httpx2  # noqa: PLC0415  slow, and only searches need it

        from ouzel.outbound.http_transport import CheckedTransport  # noqa: PLC0415

        transport = CheckedTransport(
            self._allowed,
            connect_timeout_s=self._timeout_s,
            max_answer_bytes=_MAX_ANSWER_BYTES,
        )
        try:
            async with httpx2.AsyncClient(
                transport=transport, timeout=self._timeout_s, trust_env=False
            ) as client:
                answer = await self._send(client, params, headers, body)
            if answer.status_code != httpx2.codes.OK:
                raise WebError(f"the search engine answered with the status {answer.status_code}")
            return msgspec.json.decode(answer.content, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise WebError("the search engine did not answer with JSON") from None
        except httpx2.TransportError as error:
            raise WebError(f"the search engine cannot be asked: {error}") from error

    async def _send(
        self,
        client: "httpx2.AsyncClient",
        params: Mapping[str, str | int] | None,
        headers: Mapping[str, str] | None,
        body: object,
    ) -> "httpx2.Response":
        if body is None:
            return await client.get(self.url, params=params, headers=headers)
        return await client.post(self.url, json=body, headers=headers)


class SearXng:
    def __init__(self, url: str, *, timeout_s: float) -> None:
        """`url` is the address of the instance, with or without `/search`."""
        base = url.rstrip("/")
        self._client = SearchClient(
            base if base.endswith("/search") else f"{base}/search", timeout_s=timeout_s
        )

    async def search(self, query: Query) -> list[SearchHit]:
        text = _add_sites(query)
        answer = await self._client.ask(params={"q": text, "format": "json"})
        return _read_hits(answer.get("results"), query, snippet="content", date="publishedDate")


class Brave:
    def __init__(self, key: str, *, url: str = BRAVE_URL, timeout_s: float) -> None:
        self._client = SearchClient(url, timeout_s=timeout_s)
        self._key = key

    async def search(self, query: Query) -> list[SearchHit]:
        params: dict[str, str | int] = {"q": _add_sites(query), "count": min(query.num_hits, 20)}
        if query.country is not None:
            params["country"] = query.country
        headers = {"X-Subscription-Token": self._key, "Accept": "application/json"}
        answer = await self._client.ask(params=params, headers=headers)
        web = answer.get("web")
        found = web.get("results") if isinstance(web, dict) else None
        return _read_hits(found, query, snippet="description", date="age")


class Tavily:
    def __init__(self, key: str, *, url: str = TAVILY_URL, timeout_s: float) -> None:
        self._client = SearchClient(url, timeout_s=timeout_s)
        self._key = key

    async def search(self, query: Query) -> list[SearchHit]:
        body: dict[str, object] = {"query": query.text, "max_results": min(query.num_hits, 20)}
        if query.domains:
            body["include_domains"] = list(query.domains)
        headers = {"Authorization": f"Bearer {self._key}"}
        answer = await self._client.ask(headers=headers, body=body)
        return _read_hits(answer.get("results"), query, snippet="content", date="published_date")


def make_provider(name: str, url: str, key: str, *, timeout_s: float) -> SearchProvider:
    """Makes the provider of the options. Raises ValueError if an option is missing."""
    if name == "searxng":
        if not url:
            raise ValueError("web_search_url: is required for searxng")
        return SearXng(url, timeout_s=timeout_s)
    if not key:
        raise ValueError(f"web_search_key: is required for {name}")
    if name == "brave":
        return Brave(key, url=url or BRAVE_URL, timeout_s=timeout_s)
    return Tavily(key, url=url or TAVILY_URL, timeout_s=timeout_s)


def is_of_domain(url: str, domains: Iterable[str]) -> bool:
    """Tells whether the host of a URL is one of the domains, or within one."""
    host = (urlsplit(url).hostname or "").lower()
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _add_sites(query: Query) -> str:
    """Adds the domains to the text, in the words that search engines share."""
    if not query.domains:
        return query.text
    sites = " OR ".join(f"site:{domain}" for domain in query.domains)
    return f"{query.text} ({sites})"


def _read_hits(found: object, query: Query, *, snippet: str, date: str) -> list[SearchHit]:
    """Reads the list of an answer; entries without a web address are left out."""
    hits: list[SearchHit] = []
    for each in found if isinstance(found, list) else []:
        if not isinstance(each, dict):
            continue
        url = each.get("url")
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            continue
        if query.domains and not is_of_domain(url, query.domains):
            continue
        published = each.get(date)
        hits.append(
            SearchHit(
                str(each.get("title") or url)[:_MAX_TITLE],
                url,
                " ".join(str(each.get(snippet) or "").split())[:_MAX_SNIPPET],
                published if isinstance(published, str) else None,
            )
        )
    return hits[: query.num_hits]
