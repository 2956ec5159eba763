"""Passes errors of the HTTP protocol to the application, which answers them like all errors.

These errors therefore have an id, a log line and an error object in the right style. The protocol
stores the error in the scope of the request. If the request could not be read, its scope has no
method and path.
"""

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any  # scopes hold anything

from starlette.types import Scope

from ouzel.errors import OuzelError

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SCOPE_KEY = "ouzel.refusal"
# the method and the path of a request that could not be read
UNREAD = "-"


def refuse(scope: MutableMapping[str, Any], error: OuzelError) -> None:
    scope[_SCOPE_KEY] = error


def raise_refusal(scope: Mapping[str, Any]) -> None:
    """Raises the error that the protocol stored in the scope, if any."""
    error = scope.get(_SCOPE_KEY)
    if error is not None:
        raise error


def make_unread_scope(protocol: "HttpToolsProtocol") -> Scope:
    return {
        "type": "http",
        "asgi": {"version": protocol.asgi_version, "spec_version": "2.3"},
        "http_version": "1.1",
        "method": UNREAD,
        "path": UNREAD,
        "raw_path": UNREAD.encode(),
        "query_string": b"",
        "root_path": protocol.root_path,
        "server": protocol.server,
        "client": protocol.client,
        "scheme": protocol.scheme,
        "headers": [],
        "state": protocol.app_state.copy(),
    }
