"""Maps each class of exception to status, message, type and code. A style writes them as a body."""

import math
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from ouzel.api.http.errors import MethodNotAllowed, Unauthenticated
from ouzel.errors import UNEXPECTED, OuzelError, TryLater

Headers = list[tuple[bytes, bytes]]


class Fault(msgspec.Struct, frozen=True):
    """An error with the fields of OpenAI's error object, its status and headers."""

    status: int
    message: str
    type: str
    param: str | None
    code: str | None
    headers: Headers = msgspec.field(default_factory=list)
    request_id: str = ""  # id of the failed request


class ErrorAnswer(msgspec.Struct, frozen=True):
    status: int
    body: object  # a value for the JSON encoder


ErrorStyle = Callable[[Fault], ErrorAnswer]


class ErrorDetails(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(msgspec.Struct):
    error: ErrorDetails


def openai_style(fault: Fault) -> ErrorAnswer:
    return ErrorAnswer(
        fault.status, ErrorBody(ErrorDetails(fault.message, fault.type, fault.param, fault.code))
    )


def make_fault(error: BaseException) -> Fault:
    """Returns the facts of an exception for the client.

    Exceptions that are not ours stay secret.
    """
    match error:
        case TryLater(retry_after_s=seconds):
            return _fault(error, [(b"retry-after", str(max(1, math.ceil(seconds))).encode())])
        case Unauthenticated():
            return _fault(error, [(b"www-authenticate", b"Bearer")])
        case MethodNotAllowed():
            return _fault(error, [(b"allow", error.allowed.encode())])
        case OuzelError():
            return _fault(error, [])
        case _:
            return Fault(HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED, "server_error", None, None)


def _fault(error: OuzelError, headers: Headers) -> Fault:
    return Fault(error.status, str(error), error.type, error.param, error.code, headers)
