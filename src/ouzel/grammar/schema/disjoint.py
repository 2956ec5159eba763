"""Finds JSON schemas without common instances: a `oneOf` of them is an `anyOf`."""

from collections.abc import Callable, Hashable, Iterator, Mapping

Schema = Mapping[str, object]
Resolve = Callable[[object], object]  # returns the target of a `$ref`; None if it is unknown

MAX_OPTIONS = 100  # each option is compared with each other
_MAX_DEPTH = 6
_ALL_KINDS = frozenset(["string", "number", "boolean", "null", "array", "object"])


def are_disjoint(options: list[object], resolve: Resolve) -> bool:
    """Tells whether types, constants, or a property that all require prove that no two hold at
    once.
    """
    if len(options) > MAX_OPTIONS:
        return False
    pairs = ((one, other) for place, one in enumerate(options) for other in options[:place])
    return all(_exclude(one, other, resolve, 0) for one, other in pairs)


def _exclude(one: object, other: object, resolve: Resolve, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return False
    if one is False or other is False:
        return True
    return any(
        _exclude_alone(a, b, resolve, depth)
        for a in _conditions(one, resolve, 0)
        for b in _conditions(other, resolve, 0)
    )


def _conditions(schema: object, resolve: Resolve, depth: int) -> Iterator[Schema]:
    """Yields the schemas that hold together: this one, its `$ref`'s target, and its `allOf`."""
    # `$id` changes the meaning of `$ref`.
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or "$id" in schema:
        return
    yield schema
    if "$ref" in schema:
        yield from _conditions(resolve(schema["$ref"]), resolve, depth + 1)
    together = schema.get("allOf")
    for part in together if isinstance(together, list) else []:
        yield from _conditions(part, resolve, depth + 1)


def _exclude_alone(one: Schema, other: Schema, resolve: Resolve, depth: int) -> bool:
    common = _kinds(one) & _kinds(other)
    if not common:
        return True
    values, other_values = _values(one), _values(other)
    if values is not None and other_values is not None and values.isdisjoint(other_values):
        return True
    if common != {"object"}:
        return False
    if _forbids_any(one, _required(other)) or _forbids_any(other, _required(one)):
        return True
    properties, others = _properties(one), _properties(other)
    names = _required(one) & _required(other) & properties.keys() & others.keys()
    return any(_exclude(properties[name], others[name], resolve, depth + 1) for name in names)


def _kinds(schema: Schema) -> frozenset[str]:
    """Returns the types of the schema's instances, with integers counted as numbers."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    kinds = frozenset(map(_kind, values)) if isinstance(values, list) else _ALL_KINDS
    types = schema.get("type")
    names = types if isinstance(types, list) else [types] if isinstance(types, str) else None
    if names is None:
        return kinds
    return kinds & {"number" if name == "integer" else str(name) for name in names}


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def _values(schema: Schema) -> frozenset[Hashable] | None:
    """Returns the listed values; None if there are none, or lists or objects among them.

    Python's 1, 1.0 and True are equal: this proves less, but nothing false.
    """
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list) or any(isinstance(value, list | dict) for value in values):
        return None
    return frozenset(values)


def _required(schema: Schema) -> frozenset[str]:
    names = schema.get("required")
    if not isinstance(names, list):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))


def _properties(schema: Schema) -> Schema:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _forbids_any(schema: Schema, names: frozenset[str]) -> bool:
    is_closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    return is_closed and bool(names - _properties(schema).keys())
