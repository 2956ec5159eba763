"""Holds the bytes of a file for browsers, plain and compressed.

The file is compressed once, when the server starts.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response

_LEVEL = 9
# A file is sent compressed if its size shrinks to this share or less.
_WORTH = 0.9
_GZIP = re.compile(r"\s*(?:gzip|x-gzip)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?", re.IGNORECASE)


class Content:
    """The bytes of an answer, with a tag that tells a browser whether its copy is still right."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self.digest = hashlib.blake2b(content, digest_size=12).hexdigest()
        self._content = content
        self._media_type = media_type
        compressed = _compress(content)
        # a picture, which its format has compressed, hardly becomes smaller
        is_smaller = len(compressed) < _WORTH * len(content)
        self._compressed = compressed if is_smaller else None

    def answer(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Returns the file, or 304 if the browser's copy is right. Each coding has its own tag."""
        vary = ", ".join(filter(None, [headers.get("vary", ""), "accept-encoding"]))
        own = {**headers, "vary": vary}
        content, tag = self._content, f'"{self.digest}"'
        if self._compressed is not None and accepts_gzip(request):
            content, tag = self._compressed, f'"{self.digest}-gzip"'
            own["content-encoding"] = "gzip"
        own["etag"] = tag
        if tag in request.headers.get("if-none-match", ""):
            own.pop("content-encoding", None)
            return Response(status_code=304, headers=own)
        return Response(content, headers=own, media_type=self._media_type)


@lru_cache(512)
def _compress(content: bytes) -> bytes:
    """Compresses a file; a process with several servers does so once."""
    return gzip.compress(content, _LEVEL, mtime=0)


def accepts_gzip(request: Request) -> bool:
    """Tells whether `Accept-Encoding` names gzip with a weight above 0 (RFC 9110, 12.5.3)."""
    for entry in request.headers.get("accept-encoding", "").split(","):
        match = _GZIP.fullmatch(entry)
        if match is not None:
            return float(match[1] or 1) > 0
    return False
