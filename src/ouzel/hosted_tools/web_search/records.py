"""Defines the records of searches in the web and of fetched pages."""

from dataclasses import dataclass
from typing import Literal, Protocol

from ouzel.errors import OuzelError
from ouzel.hosted_tools.web_search.domains import EVERY_DOMAIN, Domains

ContextSize = Literal["low", "medium", "high"]


class WebError(OuzelError):
    """A search or a page failed; the message is for the model and for people."""


class PageNotAllowed(WebError):
    """The operator, the request or the site does not allow to fetch the page."""


class UnreadablePage(WebError):
    """The page is of a type that this server cannot read."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    num_hits: int
    country: str | None = None  # two letters
    domains: Domains = EVERY_DOMAIN


@dataclass(frozen=True, slots=True)
class SearchHit:
    title: str
    url: str
    snippet: str
    published: str | None = None


@dataclass(frozen=True, slots=True)
class WebPage:
    url: str  # after redirects
    title: str
    text: str  # readable text, without navigation and advertisements


class SearchProvider(Protocol):
    """Asks one search engine."""

    async def search(self, query: Query) -> list[SearchHit]:
        """Returns hits, the best first. Raises WebError."""
        ...
