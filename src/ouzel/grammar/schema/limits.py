"""A schema as a whole has limits, which are checked once its references are resolved."""

import math
from collections.abc import Iterable, Iterator

from ouzel.grammar.caps import MAX_COMBINED_PATTERNS, MAX_DIVISOR, MAX_REFERENCE_LEVELS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.finite import endless
from ouzel.grammar.schema.keywords import COMBINING
from ouzel.grammar.schema.values import significand

Schema = dict[str, object]


def check_limits(root: Schema, definitions: Schema) -> None:
    """Raises GrammarError where `root`, whose definitions these are, is above a limit or leads only back to itself."""
    if definitions:
        _check_reference_levels(root, definitions)
    combined = {id(schema): schema for schema, is_combined in _schemas(root, definitions) if is_combined}.values()
    num_patterns = sum(any(isinstance(each.get(name), str) for name in ("pattern", "format")) for each in combined)
    check_at_most("the number of patterns and formats in combined schemas", num_patterns, MAX_COMBINED_PATTERNS)
    divisors = "the multipleOf in {}, without decimal points and zeros at their ends and {},"
    in_all = _divisors(schema for schema, _ in _schemas(root, definitions))
    check_at_most(divisors.format("the schema", "added up"), sum(in_all), MAX_DIVISOR)
    check_at_most(divisors.format("combined schemas", "multiplied"), math.prod(_divisors(combined)), MAX_DIVISOR)


def _check_reference_levels(root: Schema, definitions: Schema) -> None:
    """Raises GrammarError where references, as first met, lead too deep into others, or one only back to itself."""
    reached: dict[str, int] = dict.fromkeys(_references(root, definitions), 1)
    pending = list(reached)
    while pending:
        name = pending.pop()
        check_at_most("the number of references within references", reached[name], MAX_REFERENCE_LEVELS)
        for inner in _references(definitions[name], {}):
            if inner not in reached:
                reached[inner] = reached[name] + 1
                pending.append(inner)
    if endless(definitions):
        raise GrammarError("a $ref leads only back to itself, so that no value would ever end")


def _definition_name(reference: str) -> str:
    return reference.removeprefix("#/$defs/")


def _references(value: object, skipped: Schema) -> Iterator[str]:
    """Yields the definitions referred to in here; enums and constants hold no schemas."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref" and isinstance(inner, str):
                yield _definition_name(inner)
            elif key not in {"enum", "const"} and inner is not skipped:
                yield from _references(inner, skipped)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner, skipped)


def _divisors(schemas: Iterable[Schema]) -> set[int]:
    """Returns different ones only: equal ones share their states."""
    values = (schema.get("multipleOf") for schema in schemas)
    return {significand(value) for value in values if isinstance(value, int | float)}


def _schemas(root: Schema, definitions: Schema) -> Iterator[tuple[Schema, bool]]:
    """Yields all schemas, each with whether others may join it on the same value; some come twice."""
    pending: list[tuple[object, bool]] = [(root, False)]
    seen: set[tuple[int, bool]] = set()
    while pending:
        value, is_combined = pending.pop()
        if not isinstance(value, dict | list) or (id(value), is_combined) in seen:
            continue
        seen.add((id(value), is_combined))
        if isinstance(value, list):
            pending += [(inner, is_combined) for inner in value]
            continue
        yield value, is_combined
        for keyword, inner in value.items():
            if keyword == "const" or (keyword == "enum" and isinstance(inner, list)):
                continue
            is_joined = keyword in COMBINING and (keyword == "allOf" or bool(value.keys() - {keyword, "type", "$defs"}))
            is_reference = keyword == "$ref" and isinstance(inner, str)
            target = definitions.get(_definition_name(str(inner))) if is_reference else inner
            pending.append((target, is_combined or is_joined))
