"""Fetches pages of the web for the model.

Every host and every redirect is checked, robots.txt is respected, bytes and time are limited, and
HTML is read in a limited process.
"""

import asyncio
import importlib.util
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import msgspec

from ouzel.config.media_hosts import AllowedHosts
from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint
from ouzel.hosted_tools.web_search.domains import EVERY_DOMAIN, Domains
from ouzel.hosted_tools.web_search.readable_job import ReadableText
from ouzel.hosted_tools.web_search.records import WebError, WebPage
from ouzel.limited_process import JobEnded, LimitedProcess, Limits
from ouzel.outbound.hosts import check_host, read_target

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

_AGENT = "Ouzel"
_HEADERS = {
    "User-Agent": f"{_AGENT} (a language-model server; a user asked for this page)",
    "Accept": "text/html, text/plain, text/markdown;q=0.9",
    "Accept-Encoding": "identity",
}
_MAX_REDIRECTS = 5
_MAX_BYTES = 4 * 2**20
_MAX_ROBOTS = 500  # rules of hosts in memory
_TEXTS = ("text/plain", "text/markdown", "application/json")
_HTML = ("text/html", "application/xhtml+xml")
_LIMITS = Limits(wall_s=20.0, memory_bytes=512 * 2**20, cpu_s=10.0)


def has_extra() -> bool:
    """Tells whether the package that reads HTML is installed."""
    return importlib.util.find_spec("trafilatura") is not None


class Pages:
    """Fetches pages. It belongs to one event loop."""

    def __init__(self, allowed: AllowedHosts, *, timeout_s: float) -> None:
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._robots: OrderedDict[str, RobotFileParser | None] = OrderedDict()
        self._process = LimitedProcess(
            "ouzel.hosted_tools.web_search.readable_job:create_readable_job", {}, _LIMITS
        )

    def close(self) -> None:
        self._process.close()

    async def fetch(self, url: str, domains: Domains = EVERY_DOMAIN) -> WebPage:
        """Fetches a page of the domains and returns its readable text. Raises WebError."""
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
        except httpx2.TransportError as error:
            raise WebError(f"the page cannot be fetched: {error}") from error
        return await self._read(answer, url)

    async def _get(
        self, client: "httpx2.AsyncClient", url: str, domains: Domains
    ) -> "tuple[httpx2.Response, str]":
        for _ in range(_MAX_REDIRECTS + 1):
            self._check(url)
            if not domains.permit(url):
                raise WebError(f"the URL must be {domains.describe()}, given {url[:300]!r}")
            if not await self._may_fetch(client, url):
                raise WebError("the robots.txt of the site does not allow to fetch this page")
            answer = await client.get(url)
            if not answer.is_redirect:
                return answer, url
            url = urljoin(url, answer.headers.get("location", ""))
        raise WebError(f"the page redirects more than {_MAX_REDIRECTS} times")

    def _check(self, url: str) -> None:
        try:
            if not url.startswith(("http://", "https://")):
                raise InvalidRequest("must begin with http:// or https://", field="the URL")
            check_host(read_target(url, "the URL"), self._allowed, "the URL")
        except InvalidRequest as error:
            raise WebError(str(error)) from None

    async def _may_fetch(self, client: "httpx2.AsyncClient", url: str) -> bool:
        """Tells whether the robots.txt of the site allows the page; without rules it does."""
        import httpx2  # noqa: PLC0415

        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        if site not in self._robots:
            rules: RobotFileParser | None = None
            try:
                answer = await client.get(f"{site}/robots.txt")
                if answer.status_code == httpx2.codes.OK:
                    rules = RobotFileParser()
                    rules.parse(answer.text.splitlines())
            except httpx2.TransportError as error:
                logger.debug("no robots.txt of %s: %s", parts.netloc, error)
            self._robots[site] = rules
            if len(self._robots) > _MAX_ROBOTS:
                self._robots.popitem(last=False)
        rules = self._robots[site]
        return rules is None or rules.can_fetch(_AGENT, url)

    async def _read(self, answer: "httpx2.Response", url: str) -> WebPage:
        if not answer.is_success:
            raise WebError(f"the page answered with the status {answer.status_code}")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in _TEXTS:
            return WebPage(url, url, answer.text)
        if kind not in _HTML:
            raise WebError(f"the page is of a type that cannot be read: {kind[:80] or 'none'}")
        if not has_extra():
            raise WebError(f"this server cannot read HTML: {install_hint('web')}")
        try:
            encoded = await asyncio.to_thread(self._process.run, answer.content)
        except JobEnded as ended:
            raise WebError("the page cannot be read: it is too large or broken") from ended
        readable = msgspec.msgpack.decode(encoded, type=ReadableText)
        return WebPage(url, readable.title or url, readable.text)
