"""A schema as a whole has limits, which are checked once its references are resolved."""

from collections.abc import Iterator

from ouzel.grammar.caps import MAX_COMBINED_PATTERNS, MAX_REFERENCE_LEVELS, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.finite import endless
from ouzel.grammar.schema.keywords import COMBINING

Schema = dict[str, object]


def check_limits(root: Schema, definitions: Schema) -> None:
    """Raises GrammarError where `root`, whose definitions these are, is above a limit or leads only back to itself."""
    if definitions:
        _check_reference_levels(root, definitions)
    num_combined = len({id(schema) for schema in _combined_patterns(root, definitions)})
    check_at_most("the number of patterns and formats in combined schemas", num_combined, MAX_COMBINED_PATTERNS)


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


def _combined_patterns(root: Schema, definitions: Schema) -> Iterator[Schema]:
    """Yields schemas with a pattern or a format that others on the same value may join; some come twice."""
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
        if is_combined and any(isinstance(value.get(name), str) for name in ("pattern", "format")):
            yield value
        for keyword, inner in value.items():
            is_joined = keyword in COMBINING and (keyword == "allOf" or bool(value.keys() - {keyword, "type", "$defs"}))
            is_reference = keyword == "$ref" and isinstance(inner, str)
            target = definitions.get(_definition_name(str(inner))) if is_reference else inner
            pending.append((target, is_combined or is_joined))
