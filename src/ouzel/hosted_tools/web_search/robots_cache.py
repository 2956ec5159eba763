"""Fetches robots.txt of sites, and remembers the rules for a while."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ouzel.hosted_tools.web_search.records import WebError
from ouzel.hosted_tools.web_search.redirects import MAX_REDIRECTS, read_location
from ouzel.hosted_tools.web_search.robots import MAX_ROBOTS_BYTES, Robots, read_robots

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

_MAX_SITES = 500
_MAX_AGE_S = 3600.0
_EVERYTHING = Robots()


class RobotsCache:
    """Has the rules of sites for one agent. It belongs to one event loop."""

    def __init__(
        self, product: str, check: Callable[[str], None], *, max_age_s: float = _MAX_AGE_S
    ) -> None:
        """`check` raises WebError for a URL that may not be asked."""
        self._product = product
        self._check = check
        self._max_age_s = max_age_s
        self._sites: OrderedDict[str, tuple[float, Robots]] = OrderedDict()

    async def permit(self, client: "httpx2.AsyncClient", url: str) -> bool:
        """Tells whether the site allows the page.

        Raises WebError if the site cannot say, because RFC 9309 allows no page then; and
        httpx2.TransportError if it cannot be reached.
        """
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        read_at, robots = self._sites.get(site, (0.0, None))
        if robots is None or time.monotonic() - read_at >= self._max_age_s:
            robots = await self._fetch(client, site)
            self._sites[site] = (time.monotonic(), robots)
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        # in a thread, because a stranger may have written thousands of long rules
        return await asyncio.to_thread(robots.permit, url)

    async def _fetch(self, client: "httpx2.AsyncClient", site: str) -> Robots:
        """Returns the rules of a site; rules in a place that may not be asked do not count."""
        url = f"{site}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            async with client.stream("GET", url) as answer:
                if not answer.has_redirect_location:
                    return await self._read(answer)
            try:
                url = read_location(answer, url)
                self._check(url)
            except WebError as error:
                logger.debug("robots.txt of %s is not read: %s", site, error)
                break
        return _EVERYTHING

    async def _read(self, answer: "httpx2.Response") -> Robots:
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise WebError(
                "the site does not say whether its pages may be fetched: the status of its "
                f"robots.txt is {answer.status_code}"
            )
        if not answer.is_success:
            return _EVERYTHING
        data = bytearray()
        async for piece in answer.aiter_raw():
            data += piece
            if len(data) > MAX_ROBOTS_BYTES:
                break
        return await asyncio.to_thread(read_robots, bytes(data), self._product)
