"""The router refuses what it has no endpoint for."""

from ouzel.errors import InvalidRequest


class UnknownUrl(InvalidRequest):
    """No endpoint has this path."""

    status = 404
    code = "unknown_url"


class MethodNotAllowed(InvalidRequest):
    """The path has endpoints, for other methods."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, path: str, allowed: str) -> None:
        super().__init__(f"{method} is not allowed on {path}; allowed: {allowed}")
        self.allowed = allowed  # as the header has it
