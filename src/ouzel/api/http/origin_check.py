"""Refuses requests that a browser sends for a page of another site.

A browser sends a preflight before most requests of a page of another origin. It sends none before a
form, a `fetch` in the mode `no-cors` with a text, or a WebSocket. The page cannot read the answer,
but the server computes and stores it. Browsers name the page's origin in each of these requests;
pages cannot change the name, and other clients send none.
"""

from collections.abc import Collection
from urllib.parse import SplitResult, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.http.errors import ForeignOrigin
from ouzel.api.http.exchange import get_header
from ouzel.api.http.key_checks import list_keys

# methods that change nothing and compute next to nothing
_HARMLESS_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# "same-site" is another port, or a sibling of the name
_FOREIGN_SITES = frozenset({"cross-site", "same-site"})
# "none" is a person, or an extension that may reach this server
_OWN_SITES = frozenset({"same-origin", "none"})
_SCHEMES_OF_PAGES = frozenset({"http", "https", "file", ""})  # "null" has no scheme
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Fetch lets pages send these types without a preflight, and requests without the header.
_SIMPLE_TYPES = frozenset(
    {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"}
)
_MAX_SHOWN = 100


class OriginCheck:
    """Raises ForeignOrigin for pages of other origins. Requests without browser headers pass."""

    def __init__(self, app: ASGIApp, allowed_origins: Collection[str]) -> None:
        """`allowed_origins` are the origins that CORS allows; `*` allows all."""
        self._app = app
        self._allowed_origins = allowed_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            self._check(scope, "open WebSockets")
        elif scope["method"] not in _HARMLESS_METHODS:
            self._check(scope, f"send a {scope['method'][:_MAX_SHOWN]}")
        await self._app(scope, receive, send)

    def _check(self, scope: Scope, action: str) -> None:
        origin, site = get_header(scope, b"origin"), get_header(scope, b"sec-fetch-site")
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
    """Tells whether a browser sent a preflight first, so that this server's CORS allowed the
    request.

    Pages need a preflight to send a key. Programs with pages of their own (extensions, Electron,
    editors) may be exempt from CORS, but no page of a site can use their origins: they may also
    send JSON.
    """
    if any(list_keys(scope)):
        return True
    split = _split(origin)
    if split is None or split.scheme in _SCHEMES_OF_PAGES:
        return False
    media_type = (get_header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    return scope["method"] != "POST" or media_type not in _SIMPLE_TYPES


def _is_own(origin: str, scope: Scope) -> bool:
    """Compares the origin's host and port with the host and port of the request.

    A proxy may have ended TLS and replaced `Host`, so `X-Forwarded-Host` counts too: no page can
    set it without a preflight.
    """
    split = _split(origin)
    own = None if split is None else _host_and_port(split.netloc, split.scheme)
    if split is None or own is None:
        return False
    hosts = [get_header(scope, b"host"), *(get_header(scope, b"x-forwarded-host") or "").split(",")]
    return own in [_host_and_port(host.strip(), split.scheme) for host in hosts if host]


def _host_and_port(text: str, scheme: str) -> tuple[str, int | None] | None:
    split = _split(f"//{text}")
    try:
        if split is None or not split.hostname:
            return None
        return split.hostname, split.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:  # the port is not a number
        return None


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _refusal(action: str, name: str, value: str) -> ForeignOrigin:
    allowed = "--allowed-origins lists the origins that may"
    return ForeignOrigin(
        f"a page of another origin (header {name}) may not {action} here, {allowed}, "
        f"given {value[:_MAX_SHOWN]!r}"
    )
