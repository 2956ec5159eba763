"""The server refuses requests that a browser sends for a page of another site.

A browser asks with a preflight before a page of another origin may send most requests, but not before all: a form, a
`fetch` in the mode `no-cors` with a text, and a WebSocket reach the server unasked. The page cannot read the answer,
yet the server computes it and stores it. Browsers name the page's origin in each of these requests, and no page can
change the name; other clients name none.
"""

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.exchange import header
from ouzel.api.http.guard import keys_in
from ouzel.errors import ForeignOrigin

_HARMLESS_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS"}
)  # they change nothing and compute next to nothing
_FOREIGN_SITES = frozenset(
    {"cross-site", "same-site"}
)  # the second is another port or a sibling's name
_OWN_SITES = frozenset(
    {"same-origin", "none"}
)  # the second is a person, or an extension that may reach this server
_SCHEMES_OF_PAGES = frozenset({"http", "https", "file", ""})  # "null" has no scheme
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Fetch lets pages send these without a preflight; a request without the header has none of the others either.
_SIMPLE_TYPES = frozenset(
    {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}
)
_MAX_SHOWN = 100


class OwnPages:
    """Raises ForeignOrigin. Requests without the headers of browsers pass."""

    def __init__(self, app: ASGIApp, allowed_origins: Collection[str]) -> None:
        """`allowed_origins` are the origins of CORS; `*` allows all."""
        self._app = app
        self._allowed_origins = allowed_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            self._check(scope, "open WebSockets")
        elif scope["method"] not in _HARMLESS_METHODS:
            self._check(scope, f"send a {scope['method'][:_MAX_SHOWN]}")
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, action: str) -> None:
        origin, site = header(scope, b"origin"), header(scope, b"sec-fetch-site")
        if (origin is None and site is None) or "*" in self._allowed_origins:
            return
        if scope["type"] != "websocket" and _needed_preflight(scope, origin or ""):
            return
        if origin is None:
            if site in _FOREIGN_SITES:
                raise _refusal(action, "Sec-Fetch-Site", site)
        elif (
            origin not in self._allowed_origins
            and site not in _OWN_SITES
            and not _is_own(origin, scope)
        ):
            raise _refusal(action, "Origin", origin)


def _needed_preflight(scope: Scope, origin: str) -> bool:
    """Tells whether a browser has asked before it sent the request, so that the server's CORS has allowed it.

    Of pages that holds for requests with a key. Programs with pages of their own (extensions, Electron, editors) may
    be exempt from CORS; a page of a site can use none of their origins. So these also send JSON.
    """
    if any(keys_in(scope)):
        return True
    split = _split(origin)
    if split is None or split.scheme in _SCHEMES_OF_PAGES:
        return False
    media_type = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    return scope["method"] != "POST" or media_type not in _SIMPLE_TYPES


def _is_own(origin: str, scope: Scope) -> bool:
    """Compares the origin's host and port with the request's; a proxy may have ended TLS and replaced `Host`.

    No page can set `X-Forwarded-Host` without a preflight.
    """
    split = _split(origin)
    own = None if split is None else _host_and_port(split.netloc, split.scheme)
    if split is None or own is None:
        return False
    hosts = [header(scope, b"host"), *(header(scope, b"x-forwarded-host") or "").split(",")]
    return own in [_host_and_port(host.strip(), split.scheme) for host in hosts if host]


def _host_and_port(text: str, scheme: str) -> tuple[str, int | None] | None:
    split = _split(f"//{text}")
    try:
        return (
            None
            if split is None or not split.hostname
            else (split.hostname, split.port or _DEFAULT_PORTS.get(scheme))
        )
    except ValueError:  # the port is no number
        return None


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _refusal(action: str, name: str, value: str) -> ForeignOrigin:
    allowed = "--allowed-origins names the origins that may"
    return ForeignOrigin(
        f"a page of another origin (header {name}) may not {action} here, {allowed}, given {value[:_MAX_SHOWN]!r}"
    )
