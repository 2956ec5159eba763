"""Serves the playground: a page at `/` with its styles and modules, which uses the same API as
clients.

Its files are open, because they show nothing of this server. Its requests need the key that a
person types.
"""

import hashlib
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.playground import DIRECTORY, file_names

_PREFIX = "/playground/"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
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


class PlaygroundFile:
    def __init__(self, name: str, *, root_path: str) -> None:
        path = DIRECTORY / name
        self._content = path.read_bytes()
        # references in pages begin at the server's root
        if path.suffix == ".html":
            self._content = self._content.replace(b'="/', f'="{root_path}/'.encode())
        self._media_type = _MEDIA_TYPES[path.suffix]
        self._tag = f'"{hashlib.blake2b(self._content, digest_size=12).hexdigest()}"'

    async def __call__(self, request: Request) -> Response:
        headers = _HEADERS | {"etag": self._tag}
        if self._tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._content, headers=headers, media_type=self._media_type)


def _make_endpoint(name: str) -> Callable[[Catalogue], Callable[[Request], Awaitable[Response]]]:
    return lambda catalogue: (
        PlaygroundFile(name, root_path=catalogue.shared.config.root_path).__call__
    )


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
