"""Exceptions as OpenAI error objects: one table, by class."""

import math
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException

from ouzel.errors import OuzelError, TryLater

Headers = list[tuple[bytes, bytes]]


class ErrorDetails(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(msgspec.Struct):
    error: ErrorDetails


class ErrorAnswer(msgspec.Struct, frozen=True):
    status: int
    body: ErrorBody
    headers: Headers


def answer_to(error: Exception, *, method: str, path: str) -> ErrorAnswer:
    """What the client is told; of an exception that is not ours, nothing but that it happened."""
    headers: Headers = []
    match error:
        case TryLater(retry_after_s=seconds):
            headers = [(b"retry-after", str(max(1, math.ceil(seconds))).encode())]
            details = _details_of(error)
            status = error.status
        case OuzelError():
            details = _details_of(error)
            status = error.status
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            details = ErrorDetails(f"unknown URL: {method} {path}", "invalid_request_error", None, "unknown_url")
            status = HTTPStatus.NOT_FOUND
        case HTTPException(status_code=HTTPStatus.METHOD_NOT_ALLOWED):
            allowed = (error.headers or {}).get("Allow", "")
            message = f"{method} is not allowed on {path}; allowed: {allowed}"
            details = ErrorDetails(message, "invalid_request_error", None, "method_not_allowed")
            status = HTTPStatus.METHOD_NOT_ALLOWED
            headers = [(b"allow", allowed.encode())]
        case _:
            details = ErrorDetails("the server failed on this request; its log says why", "server_error", None, None)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
    return ErrorAnswer(int(status), ErrorBody(details), headers)


def _details_of(error: OuzelError) -> ErrorDetails:
    return ErrorDetails(str(error), error.type, error.param, error.code)
