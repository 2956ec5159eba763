"""The JSON schemas in a format are widened; the rest of the format stays."""

from collections.abc import Mapping

from ouzel.grammar.caps import MAX_LEVELS
from ouzel.grammar.schema.widened import widened_schema


def widened_format(format: Mapping[str, object]) -> dict[str, object]:
    """Returns the format with schemas that have no keyword that cannot be honoured."""
    return {name: _widened(name, value, 1) for name, value in format.items()}


def _widened(name: str, value: object, depth: int) -> object:
    if name == "json_schema":
        return widened_schema(value)
    if depth > MAX_LEVELS:
        return value
    if isinstance(value, list):
        return [_widened("", inner, depth + 1) for inner in value]
    if isinstance(value, Mapping):
        return {key: _widened(key, inner, depth + 1) for key, inner in value.items()}
    return value
