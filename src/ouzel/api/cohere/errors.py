"""Writes errors in Cohere's form: a message beside the request's id."""

from collections.abc import Mapping

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault

_PATHS = ("/v1/embed", "/v2/embed", "/v2/rerank")


class CohereError(msgspec.Struct):
    id: str
    message: str


def cohere_style(fault: Fault) -> ErrorAnswer:
    return ErrorAnswer(fault.status, CohereError(fault.request_id, fault.message))


def cohere_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the paths that only Cohere has to the style of their errors."""
    return dict.fromkeys(_PATHS, cohere_style)
