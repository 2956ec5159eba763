"""Widens the JSON schemas in a format; the rest of the format stays."""

from collections.abc import Mapping

from ouzel.grammar.caps import MAX_LEVELS
from ouzel.grammar.schema.widening import widen_schema


def widen_format(format: Mapping[str, object]) -> dict[str, object]:
    """Returns the format with schemas that have only supported keywords."""
    return {name: _widen(name, value, 1) for name, value in format.items()}


def _widen(name: str, value: object, depth: int) -> object:
    if name == "json_schema":
        return widen_schema(value)
    if depth > MAX_LEVELS:
        return value
    if isinstance(value, list):
        return [_widen("", inner, depth + 1) for inner in value]
    if isinstance(value, Mapping):
        return {key: _widen(key, inner, depth + 1) for key, inner in value.items()}
    return value
