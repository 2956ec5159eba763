"""Defines the errors of requests before an endpoint has their bodies."""

from ouzel.errors import InvalidRequest, TryLater


class Unauthenticated(InvalidRequest):
    """The request has no valid API key. The message never contains the key."""

    status = 401
    code = "invalid_api_key"


class ForeignOrigin(InvalidRequest):
    """The browser's page has an origin that may not use this server."""

    status = 403
    code = "origin_not_allowed"


class ForeignHost(InvalidRequest):
    """The request names a host that is not this server."""

    status = 403
    code = "host_not_allowed"


class PayloadTooLarge(InvalidRequest):
    """The body is longer than `max_body_bytes`."""

    status = 413
    code = "payload_too_large"


class UnsupportedEncoding(InvalidRequest):
    """The body is compressed (RFC 9110, section 8.4)."""

    status = 415
    code = "unsupported_encoding"


class BodyTimeout(InvalidRequest):
    """The body did not arrive within `body_timeout_s`."""

    status = 408
    code = "request_timeout"


class HeadTimeout(InvalidRequest):
    """The request line and the headers did not arrive within `header_timeout_s`."""

    status = 408
    code = "request_timeout"


class HeadTooLarge(InvalidRequest):
    """The request line and the headers are too long, or too many."""

    status = 431
    code = "request_header_fields_too_large"


class TooManyConnections(TryLater):
    """The maximum number of connections with open requests is reached."""

    status = 503
    type = "service_unavailable_error"
    code = "too_many_connections"


class UnknownUrl(InvalidRequest):
    """Refuses a path without an endpoint."""

    status = 404
    code = "unknown_url"


class MethodNotAllowed(InvalidRequest):
    """Refuses a method, at a path that has endpoints for other methods."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, path: str, allowed: str) -> None:
        super().__init__(f"{method} is not allowed on {path}; allowed: {allowed}")
        self.allowed = allowed  # value of the Allow header


class SocketTooOld(InvalidRequest):
    """This WebSocket accepts no more requests; a new one would."""

    code = "websocket_connection_limit_reached"

    def __init__(self, lifetime_s: float) -> None:
        super().__init__(
            f"this WebSocket has reached its age limit ({lifetime_s:g} s): open another to continue"
        )
