"""Ollama tells a fault in one string, with the status that we have for it."""

from collections.abc import Mapping

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault


class OllamaError(msgspec.Struct):
    error: str


def ollama_style(fault: Fault) -> ErrorAnswer:
    return ErrorAnswer(fault.status, OllamaError(fault.message))


def ollama_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the beginning of Ollama's paths to the style of their errors."""
    return {"/api/": ollama_style}
