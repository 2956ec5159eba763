"""Writes errors in TEI's form: a sentence and a type, with a status for each type."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import ContextLengthExceeded

_PATHS = ("/embed", "/similarity", "/info")
# TEI's status and type by the status in OpenAI's dialect
_BY_STATUS: Mapping[int, tuple[int, str]] = {
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
    status, kind = _find_status(fault)
    return ErrorAnswer(status, TeiError(fault.message, kind))


def _find_status(fault: Fault) -> tuple[int, str]:
    if fault.code == ContextLengthExceeded.code:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Validation"
    # the model was made for another task
    if fault.status == HTTPStatus.BAD_REQUEST and fault.param == "model":
        return HTTPStatus.FAILED_DEPENDENCY, "Backend"
    return _BY_STATUS.get(fault.status, (fault.status, "Validation"))


def tei_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the paths that only TEI has to the style of their errors."""
    return dict.fromkeys(_PATHS, tei_style)
