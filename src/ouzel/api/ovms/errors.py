"""Writes errors in OVMS's form, one string.

The statuses are OVMS's, unless they blame the wrong side.
"""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus

import msgspec

from ouzel.api.endpoint.operation import PREFIXES
from ouzel.api.http.errors import Unauthenticated
from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault
from ouzel.errors import InvalidRequest, ModelNotFound, OuzelError

_PREFIX = (
    "Mediapipe execution failed. MP status - INVALID_ARGUMENT: CalculatorGraph::Run() failed: \n"
    'Calculator::Process() for node "{node}" failed: '
)
# executors by the end of the path
_NODES = {
    "embeddings": "EmbeddingsExecutor",
    "rerank": "RerankExecutor",
    "audio/transcriptions": "S2tExecutor",
    "audio/translations": "S2tExecutor",
    "audio/speech": "T2sExecutor",
}
_TEXTS: dict[str | None, tuple[int, str]] = {  # status and text by our code
    "unknown_url": (HTTPStatus.BAD_REQUEST, "Invalid request URL"),
    "method_not_allowed": (HTTPStatus.NOT_ACCEPTABLE, "Unsupported method"),
    Unauthenticated.code: (
        HTTPStatus.UNAUTHORIZED,
        "Unauthorized request due to invalid or missing api-key",
    ),
    ModelNotFound.code: (
        HTTPStatus.NOT_FOUND,
        "Mediapipe graph definition with requested name is not found",
    ),
}


class NotARequest(InvalidRequest):
    """Refuses a body before a model reads it."""

    status = 412

    def __init__(self, reason: str, *, param: str | None = None) -> None:
        super().__init__(f"The file is not valid json - {reason}", param=param)


class ConfigNotReloaded(OuzelError):
    def __init__(self, *, is_unreadable: bool) -> None:
        unreadable = "Config file not found or cannot open."
        super().__init__(
            unreadable
            if is_unreadable
            else "Reloading config file failed. Check server logs for more info."
        )


class OvmsError(msgspec.Struct):
    error: str


def ovms_style(fault: Fault, node: str = "LLMExecutor") -> ErrorAnswer:
    if fault.code in _TEXTS:
        status, text = _TEXTS[fault.code]
        return ErrorAnswer(status, OvmsError(text))
    prefix = _PREFIX.format(node=node) if fault.status == HTTPStatus.BAD_REQUEST else ""
    return ErrorAnswer(fault.status, OvmsError(prefix + fault.message))


def ovms_models_style(fault: Fault) -> ErrorAnswer:
    """Writes errors of GET /models/{name}, which has its own text for an unknown model."""
    if fault.code == ModelNotFound.code:
        return ErrorAnswer(HTTPStatus.NOT_FOUND, OvmsError("Model not found"))
    return ovms_style(fault)


def ovms_error_styles(profile: str) -> Mapping[str, ErrorStyle]:
    """Maps prefixes of paths to the style of their errors.

    With OVMS's profile it covers all paths.
    """
    if profile != "ovms":
        return {}
    of_nodes = {
        f"{prefix}/{end}": partial(ovms_style, node=node)
        for prefix in PREFIXES
        for end, node in _NODES.items()
    }
    of_models = dict.fromkeys((f"{prefix}/models/" for prefix in PREFIXES), ovms_models_style)
    return {**of_nodes, **of_models, "": ovms_style}
