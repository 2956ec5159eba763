"""LMI tells what its model handler refuses as a 424, and the rest as an object of its front end."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import EngineFailed, InvalidRequest, ModelNotFound

CHAT_PATH = "/v1/chat/completions"  # is LMI's with its profile
_PREFIXES = ("/invocations", "/predictions", "/models/", "/ping")
_PREFIX = "Input Parsing failed. Ensure that the request payload is valid. "
_TYPES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "UnauthorizedException",
    HTTPStatus.NOT_FOUND: "ResourceNotFoundException",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowedException",
    HTTPStatus.REQUEST_TIMEOUT: "RequestTimeoutException",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestTooLargeException",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "BadRequestException",
    HTTPStatus.SERVICE_UNAVAILABLE: "WlmException",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalServerException",
}


class UnknownSchema(InvalidRequest):
    """The body has none of the fields that tell the schemas apart."""

    code = "unknown_schema"

    def __init__(self) -> None:
        super().__init__("Input parsing failed: invalid payload. must contain prompt, inputs, or messages")


class HandlerError(msgspec.Struct):
    error: str
    code: int


class FrontEndError(msgspec.Struct):
    code: int
    type: str
    message: str


def lmi_style(fault: Fault) -> ErrorAnswer:
    if fault.status == HTTPStatus.BAD_REQUEST:
        prefix = "" if fault.code == UnknownSchema.code else _PREFIX
        return _handler_answer(prefix + fault.message)
    if fault.code == EngineFailed.code:
        return _handler_answer(fault.message)
    if fault.status == HTTPStatus.TOO_MANY_REQUESTS:
        return _front_end_answer(HTTPStatus.SERVICE_UNAVAILABLE, "WlmCapacityException", fault.message)
    is_model = fault.code == ModelNotFound.code
    kind = "ModelNotFoundException" if is_model else _TYPES.get(fault.status, "ServerException")
    return _front_end_answer(fault.status, kind, fault.message)


def _handler_answer(message: str) -> ErrorAnswer:
    return ErrorAnswer(HTTPStatus.FAILED_DEPENDENCY, HandlerError(message, HTTPStatus.FAILED_DEPENDENCY))


def _front_end_answer(status: int, kind: str, message: str) -> ErrorAnswer:
    return ErrorAnswer(status, FrontEndError(status, kind, message))


def lmi_error_styles(profile: str) -> Mapping[str, ErrorStyle]:
    """Maps the beginnings of paths to the style of their errors."""
    return dict.fromkeys((*_PREFIXES, CHAT_PATH) if profile == "lmi" else _PREFIXES, lmi_style)
