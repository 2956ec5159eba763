"""Anthropic tells a fault by a type that goes with its status, a message and the request's id."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.endpoint.operation import PREFIXES
from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import InvalidRequest, Overloaded

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


class ThreadNotFound(InvalidRequest):
    """The server holds no conversation that ends with the message that the request continues."""

    status = 404
    code = "thread_not_found"


class ThreadAlreadyContinued(InvalidRequest):
    """Another request has continued the message."""

    code = "thread_already_continued"


class ThreadFingerprintMismatch(InvalidRequest):
    """A field that is fixed when a thread is created has another value in a request that continues the thread."""

    code = "thread_fingerprint_mismatch"


class ThreadUnsupported(InvalidRequest):
    """The request cannot belong to a thread; without the field `thread` it would be accepted."""

    code = "thread_unsupported_request"


_CODES_OF_THREADS = frozenset(
    error.code
    for error in (
        ThreadNotFound,
        ThreadAlreadyContinued,
        ThreadFingerprintMismatch,
        ThreadUnsupported,
    )
)


class CauseDetails(msgspec.Struct):
    """Names the cause of an error: Anthropic's clients recover from some causes by themselves."""

    error_code: str
    # the client may repeat the request without these fields
    unsupported: list[str] | UnsetType = UNSET


class AnthropicErrorDetails(msgspec.Struct):
    type: str
    message: str
    details: CauseDetails | UnsetType = UNSET  # only where clients know the cause


class AnthropicError(msgspec.Struct, tag="error"):
    error: AnthropicErrorDetails
    request_id: str


def anthropic_style(fault: Fault) -> ErrorAnswer:
    status = OVERLOADED if fault.code == Overloaded.code else fault.status
    other = "api_error" if status >= _FIRST_OF_SERVER else "invalid_request_error"
    details = AnthropicErrorDetails(_TYPES.get(status, other), fault.message, _cause(fault))
    return ErrorAnswer(status, AnthropicError(details, fault.request_id))


def _cause(fault: Fault) -> CauseDetails | UnsetType:
    if fault.code is None or fault.code not in _CODES_OF_THREADS:
        return UNSET
    is_unsupported = fault.code == ThreadUnsupported.code
    return CauseDetails(fault.code, ["thread"] if is_unsupported else UNSET)


def anthropic_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the beginnings of paths to the style of their errors."""
    return dict.fromkeys(_PATHS, anthropic_style)
