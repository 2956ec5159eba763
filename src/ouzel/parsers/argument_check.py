"""Checks the arguments of a call against the JSON schema of its tool, for the most common keywords.

Rules
1. An unknown keyword is ignored; then `says_all` is False.
2. A check makes a bounded number of steps, wherever the schema's references lead. Arguments that
   need more steps are refused.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any  # operands of a comparison
from urllib.parse import unquote

_MAX_STEPS = 10_000
_MAX_DEPTH = 100  # nested schemas, including references

Schema = Mapping[str, object]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return _is_number(value) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )


_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}
_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("number", operator.ge),
    "maximum": ("number", operator.le),
    "exclusiveMinimum": ("number", operator.gt),
    "exclusiveMaximum": ("number", operator.lt),
    "minLength": ("string", operator.ge),
    "maxLength": ("string", operator.le),
    "minItems": ("array", operator.ge),
    "maxItems": ("array", operator.le),
}
_COMBINING = frozenset(("allOf", "anyOf", "oneOf", "$ref"))
_ANNOTATIONS = (
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
)


class ArgumentCheck:
    """Checks values against one schema. A reference to `#` means the whole schema."""

    def __init__(self, schema: Schema, *, is_strict: bool = False) -> None:
        """With `is_strict`, an object may only have the properties that its schema lists, unless
        the schema allows others.

        A schema that lists no properties, or that is combined with another schema, does not
        restrict properties. The grammars of strict tools follow the same rule
        (`grammar/schema/reader.py`).
        """
        self.says_all = True  # no keyword has been ignored so far
        self._root = schema
        self._is_strict = is_strict
        self._num_steps = 0
        self._keywords: dict[str, Callable[[object, Schema, int], bool]] = {
            "type": lambda value, schema, _: _has_type(value, schema["type"]),
            "enum": lambda value, schema, _: _is_among(value, schema["enum"]),
            "const": lambda value, schema, _: _is_among(value, [schema["const"]]),
            "properties": self._properties,
            "required": _has_required,
            "additionalProperties": lambda *_: True,  # checked with `properties`
            "items": self._items,
            "anyOf": lambda value, schema, depth: any(self._each(value, schema, "anyOf", depth)),
            "oneOf": self._one_of,
            "allOf": lambda value, schema, depth: all(self._each(value, schema, "allOf", depth)),
            "$ref": self._reference,
            **dict.fromkeys(_ANNOTATIONS, lambda *_: True),
        }

    def obeys(self, value: object) -> bool:
        """Tells whether a value, as `json.loads` returns it, passes all known keywords."""
        return self._obeys(value, self._root, 0)

    def _obeys(
        self, value: object, schema: object, depth: int, *, is_combined: bool = False
    ) -> bool:
        """`is_combined` tells that another schema applies to the same value."""
        self._num_steps += 1
        if self._num_steps > _MAX_STEPS or depth > _MAX_DEPTH:
            return False
        if not isinstance(schema, dict):
            return schema is not False
        if self._is_strict and not is_combined and _is_open_object(schema):
            schema = {**schema, "additionalProperties": False}
        closed = {"properties"} if "additionalProperties" in schema else set[str]()
        return all(
            self._holds(keyword, value, schema, depth + 1) for keyword in schema.keys() | closed
        )

    def _holds(self, keyword: str, value: object, schema: Schema, depth: int) -> bool:
        if keyword in _BOUNDS:
            return _is_within(value, keyword, schema[keyword])
        check = self._keywords.get(keyword)
        if check is None:
            self.says_all = False
            return True
        return check(value, schema, depth)

    def _properties(self, value: object, schema: Schema, depth: int) -> bool:
        if not isinstance(value, dict):
            return True
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        if "patternProperties" in schema:  # patterns are not checked, so any property may be listed
            others = True
        known = properties if isinstance(properties, dict) else {}
        return all(
            self._obeys(member, known.get(name, others), depth) for name, member in value.items()
        )

    def _items(self, value: object, schema: Schema, depth: int) -> bool:
        if "prefixItems" in schema or not isinstance(value, list):
            return True
        return all(self._obeys(item, schema["items"], depth) for item in value)

    def _each(self, value: object, schema: Schema, keyword: str, depth: int) -> Iterator[bool]:
        """Yields, for each schema under the keyword, whether the value obeys it."""
        schemas = schema[keyword]
        is_combined = keyword == "allOf" or "properties" in schema or "$ref" in schema
        for each in schemas if isinstance(schemas, list) else ():
            yield self._obeys(value, each, depth, is_combined=is_combined)

    def _one_of(self, value: object, schema: Schema, depth: int) -> bool:
        """Checks `oneOf`, but accepts a value that obeys several of the schemas.

        Keywords that are not checked here might exclude all schemas but one.
        """
        num_obeyed = sum(self._each(value, schema, "oneOf", depth))
        if num_obeyed > 1:
            self.says_all = False
        return num_obeyed > 0

    def _reference(self, value: object, schema: Schema, depth: int) -> bool:
        target = self._find(schema["$ref"])
        if target is None:
            self.says_all = False
            return True
        is_combined = not schema.keys() <= {"$ref", *_ANNOTATIONS}
        return self._obeys(value, target, depth, is_combined=is_combined)

    def _find(self, reference: object) -> object:
        """Returns the schema for a reference within the whole schema, or None if there is none."""
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            return None
        found: object = self._root
        for part in map(unquote, reference.split("/")[1:]):
            if not isinstance(found, dict):
                return None
            found = found.get(part.replace("~1", "/").replace("~0", "~"))
        return found


def _is_open_object(schema: Schema) -> bool:
    """Tells whether the schema lists properties, and no keyword or other schema decides about
    further ones.
    """
    says_more = {"additionalProperties", "patternProperties", *_COMBINING}
    return "properties" in schema and schema.keys().isdisjoint(says_more)


def _has_type(value: object, names: object) -> bool:
    checks = [_TYPES.get(str(name)) for name in (names if isinstance(names, list) else [names])]
    return any(check is not None and check(value) for check in checks)


def _is_among(value: object, values: object) -> bool:
    return isinstance(values, list) and any(_are_equal(value, each) for each in values)


def _are_equal(value: object, other: object) -> bool:
    """Compares as JSON does: true is not 1."""
    if _is_number(value) and _is_number(other):
        return value == other
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)


def _has_required(value: object, schema: Schema, _depth: int) -> bool:
    required = schema["required"]
    if not isinstance(value, dict) or not isinstance(required, list):
        return True
    return all(name in value for name in required if isinstance(name, str))


def _is_within(value: object, keyword: str, bound: object) -> bool:
    type_name, compare = _BOUNDS[keyword]
    if not _TYPES[type_name](value) or not _is_number(bound):
        return True
    return compare(value if type_name == "number" else len(value), bound)  # type: ignore[arg-type]
