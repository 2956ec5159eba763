"""Writes errors in the forms of LMI's model handler (status 424) and front end."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import EngineFailed, InvalidRequest, ModelNotFound

CHAT_PATH = "/v1/chat/completions"  # LMI's with LMI's profile
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


_SAGEMAKER_CODES: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: "AccessDeniedException",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}
# SageMaker's statuses by the statuses of OpenAI's dialect
SAGEMAKER_STATUSES = {"400": "424", "404": "400", "429": "503", "500": "424"}
_FIRST_OF_SERVER = 500


class UnknownSchema(InvalidRequest):
    """Refuses a body without any field that tells the schemas apart."""

    code = "unknown_schema"

    def __init__(self) -> None:
        super().__init__(
            "Input parsing failed: invalid payload. must contain prompt, inputs, or messages"
        )


class HandlerError(msgspec.Struct):
    error: str
    code: int


class FrontEndError(msgspec.Struct):
    code: int
    type: str
    message: str


class SageMakerError(msgspec.Struct, omit_defaults=True):
    """An error. AWS's clients raise an exception named by the code."""

    code: str
    Message: str
    OriginalStatusCode: int = 0  # set for errors of the model, as the next field
    OriginalMessage: str = ""


def lmi_style(fault: Fault) -> ErrorAnswer:
    if fault.status == HTTPStatus.BAD_REQUEST:
        prefix = "" if fault.code == UnknownSchema.code else _PREFIX
        return _handler_answer(prefix + fault.message)
    if fault.code == EngineFailed.code:
        return _handler_answer(fault.message)
    if fault.status == HTTPStatus.TOO_MANY_REQUESTS:
        return _front_end_answer(
            HTTPStatus.SERVICE_UNAVAILABLE, "WlmCapacityException", fault.message
        )
    is_model = fault.code == ModelNotFound.code
    kind = "ModelNotFoundException" if is_model else _TYPES.get(fault.status, "ServerException")
    return _front_end_answer(fault.status, kind, fault.message)


def _handler_answer(message: str) -> ErrorAnswer:
    return ErrorAnswer(
        HTTPStatus.FAILED_DEPENDENCY, HandlerError(message, HTTPStatus.FAILED_DEPENDENCY)
    )


def _front_end_answer(status: int, kind: str, message: str) -> ErrorAnswer:
    return ErrorAnswer(status, FrontEndError(status, kind, message))


def sagemaker_style(fault: Fault) -> ErrorAnswer:
    lmis = lmi_style(fault)
    if lmis.status == HTTPStatus.FAILED_DEPENDENCY:
        body_text = msgspec.json.encode(lmis.body).decode()
        message = f'Received client error ({lmis.status}) from primary with message "{body_text}"'
        return ErrorAnswer(
            lmis.status, SageMakerError("ModelError", message, lmis.status, body_text)
        )
    if lmis.status == HTTPStatus.NOT_FOUND:
        return ErrorAnswer(HTTPStatus.BAD_REQUEST, SageMakerError("ValidationError", fault.message))
    kind = _SAGEMAKER_CODES.get(
        lmis.status, "InternalFailure" if lmis.status >= _FIRST_OF_SERVER else "ValidationError"
    )
    return ErrorAnswer(lmis.status, SageMakerError(kind, fault.message))


def lmi_error_styles(profile: str) -> Mapping[str, ErrorStyle]:
    """Maps prefixes of paths to the style of their errors."""
    paths = (*_PREFIXES, CHAT_PATH) if profile == "lmi" else _PREFIXES
    return dict.fromkeys(paths, lmi_style) | {"/endpoints": sagemaker_style}
