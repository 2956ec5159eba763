"""Finds definitions that no finite value can satisfy."""

from collections.abc import Mapping

Schema = Mapping[str, object]


def find_endless(definitions: Schema) -> set[str]:
    """Returns the names of definitions that require themselves, directly or through others.

    `$ref`s have the form `#/$defs/NAME`.
    """
    ending: set[str] = set()
    while found := {
        name for name in definitions.keys() - ending if _ends(definitions[name], ending)
    }:
        ending |= found
    return definitions.keys() - ending


def _ends(schema: object, ending: set[str]) -> bool:
    if not isinstance(schema, Mapping):
        return True
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.removeprefix("#/$defs/") not in ending:
        return False
    if not all(_ends(part, ending) for part in _parts(schema, "allOf")):
        return False
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema and not any(_ends(part, ending) for part in _parts(schema, keyword)):
            return False
    return all(_ends(part, ending) for part in _demanded(schema))


def _parts(schema: Schema, keyword: str) -> list[object]:
    parts = schema.get(keyword)
    return parts if isinstance(parts, list) else []


def _demanded(schema: Schema) -> list[object]:
    """Returns the schemas of parts that every value must have, if it must be an object or an
    array.
    """
    if schema.get("type") == "object" and "patternProperties" not in schema:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        listed = properties if isinstance(properties, Mapping) else {}
        return [listed.get(name, others) for name in _parts(schema, "required")]
    least = schema.get("minItems", 0)
    if schema.get("type") == "array" and isinstance(least, int):
        first = _parts(schema, "prefixItems")
        return [*first[:least], *([schema.get("items")] if least > len(first) else [])]
    return []
