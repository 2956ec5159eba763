"""The schemas within a schema are found by keyword: a name of a property and a constant can look like anything."""

from collections.abc import Iterable, Iterator, Mapping

Schema = Mapping[str, object]

_MAPS = frozenset(("properties", "patternProperties"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_SINGLE = frozenset(("items", "additionalProperties"))


def subschemas(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Yields those of a schema that has been read: keyword, name or number there, schema. Definitions are left out."""
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
    """Yields these and all within, as they are written: where references lead is not followed."""
    pending = [root for root in roots if isinstance(root, Mapping)]
    while pending:
        schema = pending.pop()
        yield schema
        pending += [inner for _, _, inner in subschemas(schema)]


def definition_name(schema: Schema) -> str | None:
    """Returns the name of the definition that its `$ref` leads to. `$ref`s are `#/$defs/NAME`."""
    reference = schema.get("$ref")
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None
