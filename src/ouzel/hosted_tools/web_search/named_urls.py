"""Finds the web addresses in texts, so that a model fetches only addresses that it was given."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit, urlunsplit

_URL = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}", re.IGNORECASE)
_SENTENCE_ENDS = ".,;:!?*_|"
_CLOSING = ")]}"
_MAX_URLS = 20_000


class NamedUrls:
    """A set of web addresses. Fragments do not count, nor does the case of hosts."""

    def __init__(self) -> None:
        self._urls: set[str] = set()

    def __contains__(self, url: str) -> bool:
        return _normalise(url) in self._urls

    def add(self, urls: Iterable[str]) -> None:
        for url in urls:
            if len(self._urls) < _MAX_URLS:
                self._urls.add(_normalise(url))

    def add_text(self, text: str) -> None:
        """Adds all addresses in a text."""
        self.add(_find_urls(text))


def _find_urls(text: str) -> Iterator[str]:
    for match in _URL.finditer(text):
        url = match[0].rstrip(_SENTENCE_ENDS)
        yield url
        # A bracket behind an address may belong to it or to the sentence around it.
        for closing in _CLOSING:
            shorter, found, _ = url.partition(closing)
            if found:
                yield shorter.rstrip(_SENTENCE_ENDS)
        if url.endswith(tuple(_CLOSING)):
            yield url[:-1].rstrip(_SENTENCE_ENDS)


def _normalise(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return url
    path = parts.path or "/"
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, parts.query, ""))
