"""Serves the playground: a page at `/` with its styles and modules, which uses the same API as
clients.

Its files are open, because they show nothing of this server. Its requests need the key that a
person types.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.site.language import choose_language
from ouzel.playground import DIRECTORY, LANGUAGES, RIGHT_TO_LEFT, file_names, read_texts

_PREFIX = "/playground/"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}
# The page loads nothing from elsewhere, has no inline script, and no other page may frame it.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
_PAGE_HEADERS = _HEADERS | {"vary": "accept, accept-language, cookie"}
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")  # the place of a text in a page


class PlaygroundFile:
    """Serves one file as it is."""

    def __init__(self, name: str) -> None:
        path = DIRECTORY / name
        self._file = _Content(path.read_bytes(), _MEDIA_TYPES[path.suffix])

    async def __call__(self, request: Request) -> Response:
        return self._file.answer(request, _HEADERS)


class PlaygroundPage:
    """Serves one HTML file in the language of the person who asks for it."""

    def __init__(self, name: str, *, root_path: str) -> None:
        page = (DIRECTORY / name).read_text()
        # references in pages begin at the server's root
        page = page.replace('="/', f'="{root_path}/')
        self._pages = {
            language: _Content(_translate(page, language).encode(), _MEDIA_TYPES[".html"])
            for language in LANGUAGES
        }

    async def __call__(self, request: Request) -> Response:
        page = self._pages[choose_language(request, LANGUAGES)]
        return page.answer(request, _PAGE_HEADERS)


class _Content:
    """The bytes of an answer, with a tag that tells a browser whether its copy is still right."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self._content = content
        self._media_type = media_type
        self._tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'

    def answer(self, request: Request, headers: Mapping[str, str]) -> Response:
        tagged = {**headers, "etag": self._tag}
        if self._tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=tagged)
        return Response(self._content, headers=tagged, media_type=self._media_type)


def _translate(page: str, language: str) -> str:
    """Returns a page with the texts of `language` in the place of their keys.

    Raises KeyError if the language has no text for a key.
    """
    texts = read_texts(language)
    values = {
        "language": language,
        "direction": "rtl" if language in RIGHT_TO_LEFT else "ltr",
        **{key: text for key, text in texts.items() if isinstance(text, str)},
    }
    return _PLACE.sub(lambda match: escape(values[match[1]]), page)


def _make_endpoint(name: str) -> Callable[[Catalogue], Callable[[Request], Awaitable[Response]]]:
    def make(catalogue: Catalogue) -> Callable[[Request], Awaitable[Response]]:
        if name.endswith(".html"):
            return PlaygroundPage(name, root_path=catalogue.shared.config.root_path).__call__
        return PlaygroundFile(name).__call__

    return make


OPERATIONS = tuple(
    Operation(
        method="get",
        path=_PREFIX + name,
        is_documented=False,
        is_playground=True,
        overall=_make_endpoint(name),
    )
    for name in file_names()
)
TEMPLATE = _PREFIX + "{file}"  # the path of all these files in logs and metrics
PATHS = frozenset(operation.path for operation in OPERATIONS)
