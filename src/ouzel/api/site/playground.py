"""Serves the playground: a page at `/` with its styles and modules, which uses the same API as
clients.

Its files are open, because they show nothing of this server. Its requests need the key that a
person types.
"""

import re
from collections.abc import Awaitable, Callable
from html import escape

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.site import manifest, worker
from ouzel.api.site.build import name_build
from ouzel.api.site.content import Content
from ouzel.api.site.headers import BUILD_HEADER, FILE_HEADERS, PAGE_HEADERS, PREVIEW_HEADERS
from ouzel.api.site.language import choose_language
from ouzel.playground import DIRECTORY, LANGUAGES, RIGHT_TO_LEFT, file_names, read_texts

Endpoint = Callable[[Request], Awaitable[Response]]

_PREFIX = "/playground/"
PREVIEW = "preview.html"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
}
_PLACE = re.compile(r"\{\{([\w.]+)\}\}")  # where a text stands in a page


class PlaygroundFile:
    """Serves one file as it is."""

    def __init__(self, name: str) -> None:
        path = DIRECTORY / name
        self._file = Content(path.read_bytes(), _MEDIA_TYPES[path.suffix])
        self._headers = FILE_HEADERS | {BUILD_HEADER: name_build()}

    async def __call__(self, request: Request) -> Response:
        return self._file.answer(request, self._headers)


class PlaygroundPage:
    """Serves one HTML file in the language of the person who asks for it."""

    def __init__(self, name: str, *, root_path: str) -> None:
        page = (DIRECTORY / name).read_text()
        # references in pages begin at the server's root
        page = page.replace('="/', f'="{root_path}/')
        self._pages = {
            language: Content(_translate(page, language).encode(), _MEDIA_TYPES[".html"])
            for language in LANGUAGES
        }
        headers = PREVIEW_HEADERS if name == PREVIEW else PAGE_HEADERS
        self._headers = headers | {BUILD_HEADER: name_build()}

    async def __call__(self, request: Request) -> Response:
        page = self._pages[choose_language(request, LANGUAGES)]
        return page.answer(request, self._headers)


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


def _make_endpoint(name: str) -> Callable[[Catalogue], Endpoint]:
    def make(catalogue: Catalogue) -> Endpoint:
        root_path = catalogue.shared.config.root_path
        if name == worker.NAME:
            return worker.ShellWorker(root_path).__call__
        if name == manifest.NAME:
            return manifest.Manifest(root_path).__call__
        if name.endswith(".html"):
            return PlaygroundPage(name, root_path=root_path).__call__
        return PlaygroundFile(name).__call__

    return make


OPERATIONS = (
    *(
        Operation(
            method="get",
            path=_PREFIX + name,
            is_documented=False,
            is_playground=True,
            overall=_make_endpoint(name),
        )
        for name in (*file_names(), manifest.NAME)
    ),
    # the same path on a server with --no-playground
    Operation(
        method="get",
        path=_PREFIX + worker.NAME,
        is_documented=False,
        overall=lambda catalogue: worker.RetiredWorker(catalogue.shared.config.root_path).__call__,
    ),
)
TEMPLATE = _PREFIX + "{file}"  # the path of all these files in logs and metrics
PATHS = frozenset(operation.path for operation in OPERATIONS)
