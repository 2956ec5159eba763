"""Fetches pages of the web for the model.

Every host and every redirect is checked, robots.txt is respected, and bytes and time are limited.
"""

import asyncio
from typing import TYPE_CHECKING

import ouzel
from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.web_search.domains import EVERY_DOMAIN, Domains
from ouzel.hosted_tools.web_search.page_reader import PageReader
from ouzel.hosted_tools.web_search.records import PageNotAllowed, WebError, WebPage
from ouzel.hosted_tools.web_search.redirects import MAX_REDIRECTS, read_location
from ouzel.hosted_tools.web_search.robots_cache import RobotsCache
from ouzel.outbound.hosts import check_host, read_target

if TYPE_CHECKING:
    import httpx2

_PRODUCT = "Ouzel"  # the name in robots.txt
_HEADERS = {
    "User-Agent": f"{_PRODUCT}/{ouzel.__version__} (fetches pages for users of a language model)",
    "Accept": "text/html, text/*;q=0.9, application/pdf;q=0.8, */*;q=0.1",
}
_MAX_BYTES = 8 * 2**20


class Pages:
    """Fetches pages. It belongs to one event loop."""

    def __init__(self, allowed: AllowedHosts, *, timeout_s: float) -> None:
        """`timeout_s` limits the fetch of a page, with its redirects and robots.txt."""
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._robots = RobotsCache(_PRODUCT, self._check)
        self._reader = PageReader()

    def close(self) -> None:
        self._reader.close()

    async def fetch(self, url: str, domains: Domains = EVERY_DOMAIN) -> WebPage:
        """Fetches a page of the domains and returns its readable text.

        Raises WebError, and Overloaded.
        """
        import httpx2  # noqa: PLC0415  slow, and only few requests need it

        from ouzel.outbound.http_transport import CheckedTransport  # noqa: PLC0415

        transport = CheckedTransport(
            self._allowed, connect_timeout_s=self._timeout_s, max_answer_bytes=_MAX_BYTES
        )
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                httpx2.AsyncClient(
                    transport=transport, timeout=self._timeout_s, headers=_HEADERS, trust_env=False
                ) as client,
            ):
                answer, url = await self._get(client, url, domains)
        except TimeoutError:
            raise WebError(f"the page did not come within {self._timeout_s:g} seconds") from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise WebError(f"the page cannot be fetched: {error}") from error
        if not answer.is_success:
            raise WebError(f"the page answered with the status {answer.status_code}")
        page = await self._reader.read(answer.content, answer.headers.get("content-type", ""))
        return WebPage(url, page.title or url, page.text)

    async def _get(
        self, client: "httpx2.AsyncClient", url: str, domains: Domains
    ) -> "tuple[httpx2.Response, str]":
        """Returns the answer of a page, and its URL after redirects."""
        for _ in range(MAX_REDIRECTS + 1):
            self._check(url)
            if not domains.permit(url):
                raise PageNotAllowed(f"the URL must be {domains.describe()}, given {url[:300]!r}")
            if not await self._robots.permit(client, url):
                raise PageNotAllowed("the robots.txt of the site does not allow to fetch this page")
            answer = await client.get(url)
            if not answer.has_redirect_location:
                return answer, url
            url = read_location(answer, url)
        raise WebError(f"the page redirects more than {MAX_REDIRECTS} times")

    def _check(self, url: str) -> None:
        """Raises PageNotAllowed for a URL to which this server may not connect."""
        try:
            if not url.startswith(("http://", "https://")):
                raise InvalidRequest("must begin with http:// or https://", field="the URL")
            check_host(read_target(url, "the URL"), self._allowed, "the URL")
        except InvalidRequest as error:
            raise PageNotAllowed(str(error)) from None
