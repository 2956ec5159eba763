"""Defines the errors of the router."""

from ouzel.errors import InvalidRequest


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
