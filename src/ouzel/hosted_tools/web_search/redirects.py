"""Reads redirects, which may point anywhere."""

from typing import TYPE_CHECKING
from urllib.parse import urljoin

from ouzel.hosted_tools.web_search.records import WebError

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5


def read_location(answer: "httpx2.Response", url: str) -> str:
    """Returns the URL to which the answer of `url` redirects. Raises WebError."""
    try:
        return urljoin(url, answer.headers["location"])
    except ValueError:
        raise WebError(f"{url[:300]} redirects to no valid address") from None
