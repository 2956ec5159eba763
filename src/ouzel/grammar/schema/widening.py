"""Widens schemas: removes unsupported keywords, so that every admitted value stays admitted."""

from ouzel.grammar.caps import MAX_LEVELS
from ouzel.grammar.schema.keywords import REFUSED
from ouzel.grammar.schema.string_formats import PATTERNS

_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
_SINGLE = frozenset(("items", "additionalItems", "additionalProperties"))
_FORMATS = frozenset((*PATTERNS, "int32", "int64"))


def widen_schema(schema: object, depth: int = 0) -> object:
    """Returns the schema without refused keywords and unknown formats, and with `anyOf` for
    `oneOf`.
    """
    if not isinstance(schema, dict) or depth > MAX_LEVELS:
        return schema
    result: dict[str, object] = {}
    for keyword, value in schema.items():
        is_unknown_format = keyword == "format" and not (
            isinstance(value, str) and value in _FORMATS
        )
        if keyword in REFUSED or is_unknown_format:
            continue
        name = "anyOf" if keyword == "oneOf" and "anyOf" not in schema else keyword
        result[name] = _widen_value(keyword, value, depth + 1)
    return result


def _widen_value(keyword: str, value: object, depth: int) -> object:
    if keyword in _MAPS and isinstance(value, dict):
        return {name: widen_schema(inner, depth) for name, inner in value.items()}
    if keyword in _LISTS and isinstance(value, list):
        return [widen_schema(inner, depth) for inner in value]
    return widen_schema(value, depth) if keyword in _SINGLE else value
