"""Anthropic tells a fault by a type that goes with its status, a message and the request's id."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from ouzel.api.endpoint.operation import PREFIXES
from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import Overloaded

VERSION_HEADER = "anthropic-version"  # that all its clients send, and no others
_PATHS = tuple(f"{prefix}/messages" for prefix in PREFIXES)
OVERLOADED = 529  # Anthropic's status for it: with 429 clients take it for a limit of their own
_FIRST_OF_SERVER = 500
_TYPES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    HTTPStatus.SERVICE_UNAVAILABLE: "overloaded_error",
    OVERLOADED: "overloaded_error",
}


class AnthropicErrorDetails(msgspec.Struct):
    type: str
    message: str


class AnthropicError(msgspec.Struct, tag="error"):
    error: AnthropicErrorDetails
    request_id: str


def anthropic_style(fault: Fault) -> ErrorAnswer:
    status = OVERLOADED if fault.code == Overloaded.code else fault.status
    other = "api_error" if status >= _FIRST_OF_SERVER else "invalid_request_error"
    details = AnthropicErrorDetails(_TYPES.get(status, other), fault.message)
    return ErrorAnswer(status, AnthropicError(details, fault.request_id))


def anthropic_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the beginnings of paths to the style of their errors."""
    return dict.fromkeys(_PATHS, anthropic_style)
