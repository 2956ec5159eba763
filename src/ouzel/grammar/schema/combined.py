"""Counts the demands of combined schemas on one value, which multiply in native code.

1. Demands multiply if a schema combines others: `allOf` of several, or any keyword beside `allOf`,
   `anyOf`, `oneOf` or `$ref`. A single member of one of these keywords is no combination, nor are
   the alternatives of a keyword that stands alone.
2. Parts of combined schemas are combined if they describe the same value: the same property name,
   or the same place in an array. They count as the same at every place, which overestimates the
   demands.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ouzel.grammar.caps import MAX_COMBINED_PATTERNS, MAX_DIVISOR
from ouzel.grammar.schema.keywords import COMBINING
from ouzel.grammar.schema.subschemas import Schema, definition_name, subschemas
from ouzel.grammar.schema.values import significand

_FOR_ANY = {
    "patternProperties": "properties",
    "additionalProperties": "properties",
    "items": "prefixItems",
}
"""The schemas of these keywords may describe the same value as a schema with a name or a place."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The patterns and divisors that a value must meet together; stops growing beyond a limit."""

    patterns: frozenset[int] = frozenset()  # identities of schemas with a pattern or a format
    divisors: frozenset[int] = frozenset()  # different divisors: equal ones share their states

    @property
    def product(self) -> int:
        return math.prod(self.divisors)

    def __or__(self, other: "Demands") -> "Demands":
        return Demands(
            self.patterns
            if len(self.patterns) > MAX_COMBINED_PATTERNS
            else self.patterns | other.patterns,
            self.divisors if self.product > MAX_DIVISOR else self.divisors | other.divisors,
        )


_NOTHING = Demands()


def own_demands(schemas: Iterable[Schema]) -> dict[int, Demands]:
    """Returns the demands of schemas by identity, without their parts.

    Omits schemas without demands.
    """
    return {
        id(each): _own(each)
        for each in schemas
        if not each.keys().isdisjoint(("pattern", "format", "multipleOf"))
    }


def _own(schema: Schema) -> Demands:
    has_pattern = any(isinstance(schema.get(name), str) for name in ("pattern", "format"))
    divisor = schema.get("multipleOf")
    return Demands(
        frozenset((id(schema),)) if has_pattern else frozenset(),
        frozenset((significand(divisor),)) if isinstance(divisor, int | float) else frozenset(),
    )


def combined_demands(
    schemas: list[Schema], own: dict[int, Demands], definitions: Schema
) -> Iterator[Demands]:
    """Yields the demands on each value that several of `schemas`, all schemas of a document,
    describe.
    """
    parts = {
        id(each): [*_parts(each, definitions)]
        for each in schemas
        if not each.keys().isdisjoint(COMBINING)
    }
    demands = _with_parts(own, parts)
    for_names: defaultdict[tuple[str, str], Demands] = defaultdict(Demands)
    for_any: defaultdict[str, Demands] = defaultdict(Demands)
    for schema in _combined(schemas, parts):
        if id(schema) in demands and _combines(schema):
            yield demands[id(schema)]
        for keyword, name, inner in subschemas(schema):
            if keyword in COMBINING or id(inner) not in demands:
                continue
            if keyword in _FOR_ANY:
                for_any[_FOR_ANY[keyword]] |= demands[id(inner)]
            else:
                for_names[keyword, name] |= demands[id(inner)]
    yield from for_any.values()
    yield from (each | for_any[keyword] for (keyword, _), each in for_names.items())


def _combines(schema: Schema) -> bool:
    together = schema.get("allOf")
    is_several = isinstance(together, list) and len(together) > 1
    return not schema.keys().isdisjoint(COMBINING) and (
        is_several or len(schema.keys() - {"type", "$defs"}) > 1
    )


def _parts(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    """Yields the schemas that describe the same value."""
    yield from (inner for keyword, _, inner in subschemas(schema) if keyword in COMBINING)
    name = definition_name(schema)
    target = definitions.get(name) if name is not None else None
    if isinstance(target, dict):
        yield target


def _with_parts(own: dict[int, Demands], parts: dict[int, list[Schema]]) -> dict[int, Demands]:
    """Returns the demands of each schema by identity, with all its parts and their parts."""
    demands = dict(own)
    wholes: defaultdict[int, list[int]] = defaultdict(list)
    for whole, each in parts.items():
        for part in each:
            wholes[id(part)].append(whole)
    pending = [*own]
    while pending:
        part_id = pending.pop()
        for whole in wholes[part_id]:
            together = demands.get(whole, _NOTHING) | demands[part_id]
            if together != demands.get(whole):
                demands[whole] = together
                pending.append(whole)
    return demands


def _combined(schemas: Iterable[Schema], parts: dict[int, list[Schema]]) -> Iterator[Schema]:
    """Yields each schema that combines others, and all schemas within these, once."""
    pending = [schema for schema in schemas if _combines(schema)]
    seen = set(map(id, pending))
    while pending:
        schema = pending.pop()
        yield schema
        for inner in (*parts.get(id(schema), ()), *(inner for _, _, inner in subschemas(schema))):
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append(inner)
