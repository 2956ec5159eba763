"""Writes errors in Ollama's form: one string, with our status."""

from collections.abc import Mapping

import msgspec

from ouzel.api.http.faults import ErrorAnswer, ErrorStyle, Fault


class OllamaError(msgspec.Struct):
    error: str


def ollama_style(fault: Fault) -> ErrorAnswer:
    return ErrorAnswer(fault.status, OllamaError(fault.message))


def ollama_error_styles() -> Mapping[str, ErrorStyle]:
    """Maps the prefix of Ollama's paths to the style of their errors."""
    return {"/api/": ollama_style}
