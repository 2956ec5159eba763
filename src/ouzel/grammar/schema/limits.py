"""Checks the limits of a whole schema, after its references have been resolved."""

from collections.abc import Iterator

from ouzel.grammar.caps import (
    MAX_COMBINED_PATTERNS,
    MAX_DIVISOR,
    MAX_REFERENCE_LEVELS,
    check_at_most,
)
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.combined import combined_demands, own_demands
from ouzel.grammar.schema.finite import find_endless
from ouzel.grammar.schema.subschemas import all_schemas, definition_name

Schema = dict[str, object]

_PATTERNS = "the number of patterns and formats in combined schemas for one value"
_DIVISORS = "the multipleOf in {}, without decimal points and zeros at their ends and {},"


def check_limits(root: Schema, definitions: Schema) -> None:
    """Raises GrammarError if `root`, with its definitions, exceeds a limit or can never end."""
    if definitions:
        _check_reference_levels(root, definitions)
    schemas = [*all_schemas(root, *definitions.values())]
    own = own_demands(schemas)
    if not own:
        return
    divisors = {divisor for each in own.values() for divisor in each.divisors}
    check_at_most(_DIVISORS.format("the schema", "added up"), sum(divisors), MAX_DIVISOR)
    for demands in combined_demands(schemas, own, definitions):
        check_at_most(_PATTERNS, len(demands.patterns), MAX_COMBINED_PATTERNS)
        check_at_most(
            _DIVISORS.format("combined schemas for one value", "multiplied"),
            demands.product,
            MAX_DIVISOR,
        )


def _check_reference_levels(root: Schema, definitions: Schema) -> None:
    """Raises GrammarError if references nest too deep, or one leads only back to itself."""
    reached: dict[str, int] = dict.fromkeys(_references(root), 1)
    pending = list(reached)
    while pending:
        name = pending.pop()
        check_at_most(
            "the number of references within references", reached[name], MAX_REFERENCE_LEVELS
        )
        for inner in _references(definitions[name]):
            if inner not in reached:
                reached[inner] = reached[name] + 1
                pending.append(inner)
    if find_endless(definitions):
        raise GrammarError("a $ref leads only back to itself, so that no value would ever end")


def _references(root: object) -> Iterator[str]:
    for schema in all_schemas(root):
        if (name := definition_name(schema)) is not None:
            yield name
