"""Browsers open WebSockets for pages of any origin without a preflight, so the server looks at the origin."""

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import header
from ouzel.errors import ForeignOrigin


class OwnPages:
    """Clients that are no browser send no origin, or the server's."""

    def __init__(self, app: ASGIApp, allowed_origins: Collection[str]) -> None:
        """The allowed origins are those of CORS, which sees to all other requests."""
        self._app = app
        self._allowed_origins = allowed_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            self._check(scope)
        await self._app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        origin = header(scope, b"origin")
        if origin is None or "*" in self._allowed_origins or origin in self._allowed_origins:
            return
        if _host_of(origin) != (header(scope, b"host") or "").lower():
            raise ForeignOrigin(f"pages of {origin[:100]} may not open WebSockets here: allowed_origins has other ones")


def _host_of(origin: str) -> str | None:
    """Returns None where it has none that could be read."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None
