"""What the protocol finds wrong with a request is told as all else is, by the application: in its style, with an id, a
log line and an error object.

The protocol leaves the error in the request's scope. One that could not be read has a scope without method and path.
"""

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any  # scopes hold anything

from starlette.types import Scope

from ouzel.errors import OuzelError

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_SCOPE_KEY = "ouzel.refusal"
UNREAD = "-"  # the method and the path of what could not be read


def refuse(scope: MutableMapping[str, Any], error: OuzelError) -> None:
    scope[_SCOPE_KEY] = error


def raise_refusal(scope: Mapping[str, Any]) -> None:
    """Raises the error that the protocol has left, if any."""
    error = scope.get(_SCOPE_KEY)
    if error is not None:
        raise error


def unread_scope(protocol: "HttpToolsProtocol") -> Scope:
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
