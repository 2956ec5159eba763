"""Several schemas may have a say on one value, and in native code what they demand of it multiplies.

1. They do where one combines others: `allOf` of several, or anything beside `allOf`, `anyOf`, `oneOf` or `$ref`. What
   stands alone in one of these is no combination, nor are the alternatives of one that stands alone.
2. What is within combined schemas is combined where it is for the same value: the same name of a property, or the same
   place in an array. These are held to be the same wherever they are, which is more than there are.
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
"""What these say may be about the same value as what stands under a name or at a place."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What multiplies. Once there is too much of it, it grows no further."""

    patterns: frozenset[int] = frozenset()  # identities of schemas with a pattern or a format
    divisors: frozenset[int] = frozenset()  # different ones: equal ones share their states

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
    """Returns by identity what schemas demand, without their parts; most demand nothing, and are left out."""
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
    """Yields what is demanded of each value on which several of `schemas` have a say; these are all that there are."""
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
    """Yields the schemas that are about the same value."""
    yield from (inner for keyword, _, inner in subschemas(schema) if keyword in COMBINING)
    name = definition_name(schema)
    target = definitions.get(name) if name is not None else None
    if isinstance(target, dict):
        yield target


def _with_parts(own: dict[int, Demands], parts: dict[int, list[Schema]]) -> dict[int, Demands]:
    """Returns by identity what a schema demands with all its parts, and theirs."""
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
    """Yields once each the schemas that combine others, and all that are within these."""
    pending = [schema for schema in schemas if _combines(schema)]
    seen = set(map(id, pending))
    while pending:
        schema = pending.pop()
        yield schema
        for inner in (*parts.get(id(schema), ()), *(inner for _, _, inner in subschemas(schema))):
            if id(inner) not in seen:
                seen.add(id(inner))
                pending.append(inner)
