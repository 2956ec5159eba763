"""TEI reports a fault as a sentence and a type, and each type has a status of its own."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import ContextLengthExceeded

_PATHS = ("/embed", "/similarity", "/info")
_BY_STATUS: Mapping[
    int, tuple[int, str]
] = {  # by the status in OpenAI's dialect: TEI's status and type
    HTTPStatus.BAD_REQUEST: (HTTPStatus.UNPROCESSABLE_ENTITY, "Validation"),
    HTTPStatus.TOO_MANY_REQUESTS: (HTTPStatus.TOO_MANY_REQUESTS, "Overloaded"),
    HTTPStatus.INTERNAL_SERVER_ERROR: (HTTPStatus.FAILED_DEPENDENCY, "Backend"),
    HTTPStatus.SERVICE_UNAVAILABLE: (HTTPStatus.SERVICE_UNAVAILABLE, "Unhealthy"),
}
STATUSES: Mapping[str, str] = {
    str(int(ours)): str(int(teis)) for ours, (teis, _) in _BY_STATUS.items()
}


class TeiError(msgspec.Struct):
    error: str
    error_type: str


def tei_style(fault: Fault) -> ErrorAnswer:
    status, kind = _status_and_type(fault)
    return ErrorAnswer(status, TeiError(fault.message, kind))


def _status_and_type(fault: Fault) -> tuple[int, str]:
    if fault.code == ContextLengthExceeded.code:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Validation"
    if (
        fault.status == HTTPStatus.BAD_REQUEST and fault.param == "model"
    ):  # the model was made for something else
        return HTTPStatus.FAILED_DEPENDENCY, "Backend"
    return _BY_STATUS.get(fault.status, (fault.status, "Validation"))


def tei_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the paths that only TEI has to the style of their errors."""
    return dict.fromkeys(_PATHS, tei_style)
