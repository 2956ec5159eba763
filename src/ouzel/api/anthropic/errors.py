"""Writes errors in Anthropic's form: a type by status, a message and the request's id."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.endpoint.operation import PREFIXES
from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import InvalidRequest, Overloaded

# All clients of Anthropic's API send this header, and no others do.
VERSION_HEADER = "anthropic-version"
_PATHS = tuple(f"{prefix}/messages" for prefix in PREFIXES)
# Anthropic's status for a full server: clients take 429 for a limit of their own
OVERLOADED = 529
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
    """Refuses to continue a message that ends no conversation on this server."""

    status = 404
    code = "thread_not_found"


class ThreadAlreadyContinued(InvalidRequest):
    """Refuses to continue a message that another request has continued."""

    code = "thread_already_continued"


class ThreadFingerprintMismatch(InvalidRequest):
    """Refuses to change a field that is fixed when a thread is created."""

    code = "thread_fingerprint_mismatch"


class ThreadUnsupported(InvalidRequest):
    """Refuses a request that cannot belong to a thread, but is accepted without `thread`."""

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
    """The cause of an error. Anthropic's clients recover from some causes by themselves."""

    error_code: str
    # the client may repeat the request without these fields
    unsupported: list[str] | UnsetType = UNSET


class AnthropicErrorDetails(msgspec.Struct):
    type: str
    message: str
    # set if clients know the cause
    details: CauseDetails | UnsetType = UNSET


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
    """Maps prefixes of paths to the style of their errors."""
    return dict.fromkeys(_PATHS, anthropic_style)
