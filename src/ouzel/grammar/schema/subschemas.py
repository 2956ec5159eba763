"""Finds the schemas within a schema by keyword, because names and constants can look like
schemas.
"""

from collections.abc import Iterable, Iterator, Mapping

Schema = Mapping[str, object]

_MAPS = frozenset(("properties", "patternProperties"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SINGLE = frozenset(("items", "additionalProperties"))


def subschemas(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Yields the inner schemas of a schema that was read: keyword, name or number, schema.

    Definitions are omitted.
    """
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, Mapping):
            named: Iterable[tuple[object, object]] = value.items()
        elif keyword in _LISTS and isinstance(value, list):
            named = enumerate(value)
        elif keyword in _SINGLE:
            named = (("", value),)
        else:
            continue
        yield from (
            (keyword, str(name), inner) for name, inner in named if isinstance(inner, Mapping)
        )


def all_schemas(*roots: object) -> Iterator[Schema]:
    """Yields the schemas and all schemas within them, without following references."""
    pending = [root for root in roots if isinstance(root, Mapping)]
    while pending:
        schema = pending.pop()
        yield schema
        pending += [inner for _, _, inner in subschemas(schema)]


def definition_name(schema: Schema) -> str | None:
    """Returns the name of the definition that `$ref` (`#/$defs/NAME`) refers to."""
    reference = schema.get("$ref")
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None
