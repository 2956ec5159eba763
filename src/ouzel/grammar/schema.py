"""A client's JSON schema to one that the grammar engine honours in full, or a refusal that names keyword and place.

1. Annotations go. Keywords that the engine does not have are refused, except where they cannot matter (`uniqueItems:
   false`, `then` without `if`). Keys that are none of JSON Schema's mean nothing, by its own rules; under `strict` they
   are refused, as are misspelt ones that would otherwise constrain nothing.
   What the engine would take and not keep to the letter is refused too: numbers that it rounds, and more properties
   than are required and one (it lets a name come twice).
2. Every reference is resolved here; the result stands alone, with all that is referred to in `$defs`.
3. `strict` closes objects that list their properties (`additionalProperties: false`), as OpenAI's strict mode
   presupposes, except where schemas are combined and a closed one would refuse what its neighbour requires.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import unquote, urljoin

from ouzel.grammar.caps import (
    MAX_ALL_PROPERTIES,
    MAX_COMBINED_PATTERNS,
    MAX_ENUM_VALUES,
    MAX_LITERAL_CHARS,
    MAX_PROPERTIES,
    MAX_REFERENCE_LEVELS,
    check_at_most,
)
from ouzel.grammar.disjoint import are_disjoint
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.finite import endless
from ouzel.grammar.regex import search_pattern
from ouzel.grammar.string_formats import INEXACT, PATTERNS

Schema = dict[str, object]

WHITESPACE = r"\x20|\r?\n[\x20\t]{0,32}"  # between the parts of a value: small models lose their way in more

ANNOTATIONS = frozenset(
    (
        *("title", "description", "default", "examples", "example", "$comment", "deprecated", "readOnly", "writeOnly"),
        *("contentEncoding", "contentMediaType", "contentSchema", "x-guidance"),
        *("discriminator", "xml", "externalDocs"),  # OpenAPI's, which must not change what is valid
        *("$schema", "$vocabulary", "$id", "id", "$anchor", "$defs", "definitions"),  # done with when references are
    )
)
FORMATS_THAT_SAY_NOTHING = frozenset(["float", "double", "password"])
MAX_NUMBER = 10**18  # of bounds; the engine's integers have 64 bits
INTEGER_FORMATS = {"int32": (-(2**31), 2**31 - 1), "int64": (-MAX_NUMBER, MAX_NUMBER)}
LOWER_BOUNDS = frozenset(("minimum", "exclusiveMinimum"))
UPPER_BOUNDS = frozenset(("maximum", "exclusiveMaximum"))
COUNTS = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_COMBINING = frozenset(("allOf", "anyOf", "oneOf", "$ref"))
ESCAPES = r'"\nrtbf'  # not `u`: in a name that is not listed it could spell one that is
TYPES = frozenset(["string", "number", "integer", "boolean", "null", "array", "object"])
_UNSPEAKABLE = frozenset(map(chr, [*range(0x20), 0x7F])) - frozenset("\n\r\t\b\f")  # with ESCAPES

_WITHOUT_EFFECT: dict[str, Callable[[object, Mapping[str, object]], bool]] = {
    "uniqueItems": lambda value, _: value is False,
    "then": lambda _, schema: "if" not in schema,
    "else": lambda _, schema: "if" not in schema,
    "if": lambda _, schema: "then" not in schema and "else" not in schema,
    "minContains": lambda value, schema: "contains" not in schema or value == 0,
    "maxContains": lambda _, schema: "contains" not in schema,
    "contains": lambda _, schema: schema.get("minContains") == 0 and "maxContains" not in schema,
    "not": lambda value, _: value is False,
    "propertyNames": lambda value, _: value is True or value == {},
    "unevaluatedItems": lambda value, _: value is True or value == {},
    "unevaluatedProperties": lambda value, _: value is True or value == {},
    "dependentRequired": lambda value, _: value == {},
    "dependentSchemas": lambda value, _: value == {},
    "dependencies": lambda value, _: value == {},
    "$dynamicRef": lambda _, __: False,
    "$dynamicAnchor": lambda _, __: True,
    "$recursiveRef": lambda _, __: False,
    "$recursiveAnchor": lambda _, __: True,
}


def normalised(schemas: list[object], *, is_strict: bool) -> Schema:
    """One schema that admits what any of `schemas` admits. Raises GrammarError."""
    reader = _Reader(is_strict=is_strict)
    roots = [reader.document(schema) for schema in schemas]
    reader.read_references()
    single = roots[0] if len(roots) == 1 else {"anyOf": roots}
    if single is False:
        raise GrammarError("the schema false admits nothing")
    result: Schema = dict(single) if isinstance(single, dict) else {}
    if reader.definitions:
        result["$defs"] = reader.definitions
        _check_reference_levels(result, reader.definitions)
    num_combined = len({id(schema) for schema in _combined_patterns(result, reader.definitions)})
    check_at_most("the number of patterns and formats in combined schemas", num_combined, MAX_COMBINED_PATTERNS)
    return result


def as_lark(schema: Schema) -> str:
    return "%json " + json.dumps(
        {**schema, "x-guidance": {"whitespace_pattern": WHITESPACE, "json_allowed_escapes": ESCAPES}}
    )


@dataclass(frozen=True, slots=True)
class _Document:
    """What references are resolved in."""

    root: object
    named: Mapping[str, object]  # by absolute `$id`, and by `$id#anchor`

    def find(self, reference: str, base: str) -> object:
        """Raises KeyError."""
        address, _, fragment = urljoin(base, reference).partition("#")
        if reference.startswith("#"):
            address = base.partition("#")[0]
        if fragment and not fragment.startswith("/"):
            return self.named[f"{address}#{fragment}"]
        found = self.named[address]
        for name in fragment.split("/")[1:]:
            key = unquote(name).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                found = found[int(key)] if key.isdecimal() and int(key) < len(found) else _missing(key)
            else:
                found = found[key] if isinstance(found, dict) else _missing(key)
        return found

    def found(self, reference: object, base: str) -> object:
        """None where it is not to be found."""
        try:
            return self.find(reference, base) if isinstance(reference, str) else None
        except (KeyError, ValueError):
            return None


def _missing(key: str) -> object:
    raise KeyError(key)


def _document(root: object) -> _Document:
    named: dict[str, object] = {"": root}
    pending: list[tuple[object, str]] = [(root, "")]
    while pending:
        value, base = pending.pop()
        if isinstance(value, dict):
            base = _base(value, base)
            named.setdefault(base.partition("#")[0], value)
            if isinstance(anchor := value.get("$anchor"), str):
                named[f"{base.partition('#')[0]}#{anchor}"] = value
            pending += [(inner, base) for inner in value.values()]
        elif isinstance(value, list):
            pending += [(inner, base) for inner in value]
    return _Document(root, named)


def _base(schema: Mapping[str, object], base: str) -> str:
    identifier = schema.get("$id")
    return urljoin(base, identifier) if isinstance(identifier, str) else base


@dataclass(frozen=True, slots=True)
class _Place:
    document: _Document
    base: str  # what references are relative to
    path: str
    is_combined: bool = False  # another schema has a say on the same value

    def inner(self, *names: str, is_combined: bool = False) -> "_Place":
        return _Place(self.document, self.base, "/".join((self.path, *names)), is_combined)


@dataclass(slots=True)
class _Reader:
    is_strict: bool
    definitions: Schema = field(default_factory=dict)
    _names: dict[tuple[int, bool], str] = field(default_factory=dict)  # by identity of what is referred to
    _pending: list[tuple[str, object, _Place]] = field(default_factory=list)
    _num_properties: int = 0
    _num_enum_values: int = 0

    def document(self, schema: object) -> object:
        return self.schema(schema, _Place(_document(schema), "", "#"))

    def read_references(self) -> None:
        while self._pending:
            name, schema, place = self._pending.pop()
            self.definitions[name] = self.schema(schema, place)

    def schema(self, schema: object, place: _Place) -> object:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise GrammarError(f"the schema at {place.path} must be an object or a boolean")
        place = _Place(place.document, _base(schema, place.base), place.path, place.is_combined)
        result: Schema = {}
        for keyword, value in schema.items():
            if keyword not in ANNOTATIONS:
                self._keyword(keyword, value, schema, place, result)
        _check_num_properties(result, place.path)
        if self.is_strict and _is_open_object(result) and not place.is_combined and not _combines(result):
            result["additionalProperties"] = False
        return result

    def _keyword(self, keyword: str, value: object, schema: Schema, place: _Place, result: Schema) -> None:
        at = place.inner(keyword)
        if keyword in _WITHOUT_EFFECT:
            if not _WITHOUT_EFFECT[keyword](value, schema):
                raise GrammarError(f"the keyword {keyword!r} at {place.path} is not supported")
        elif keyword in _CHECKS:
            _CHECKS[keyword](value, at.path)
            self._num_enum_values += len(value) if keyword == "enum" and isinstance(value, list) else 0
            check_at_most("the number of enum values of the schema", self._num_enum_values, MAX_ENUM_VALUES)
            result[keyword] = _tightened(keyword, _for_engine(keyword, value), result)
        elif keyword == "$ref":
            result[keyword] = self._reference(value, place, is_combined=place.is_combined or len(schema) > 1)
        elif keyword in {"properties", "patternProperties"}:
            result[keyword] = self._properties(keyword, value, at)
        elif keyword in {"items", "prefixItems", "additionalItems", "additionalProperties"}:
            self._contents(keyword, value, schema, place, result)
        elif keyword in {"anyOf", "oneOf", "allOf"}:
            self._combination(keyword, value, schema, place, result)
        elif keyword == "format":
            _read_format(value, at.path, schema, result)
        elif self.is_strict and not keyword.startswith("x-"):
            raise GrammarError(f"the keyword {keyword!r} at {place.path} is not supported in strict mode")

    def _contents(self, keyword: str, value: object, schema: Schema, place: _Place, result: Schema) -> None:
        """The older form of tuples becomes the newer: the engine forgets `prefixItems` where it sees both."""
        is_older = isinstance(schema.get("items"), list)
        if is_older and "prefixItems" in schema:
            raise GrammarError(f"{place.path}/items must be one schema beside prefixItems")
        if keyword == "prefixItems" or (keyword == "items" and is_older):
            result["prefixItems"] = self._schemas(keyword, value, schema, place)
            return
        contents = self.schema(value, place.inner(keyword))
        if keyword != "additionalItems":
            result[keyword] = contents
        elif is_older:  # else it means nothing
            result["items"] = contents

    def _combination(self, keyword: str, value: object, schema: Schema, place: _Place, result: Schema) -> None:
        """`oneOf` as `anyOf` where no two can hold at once; the engine sees that in few cases only."""
        parts = self._schemas(keyword, value, schema, place)
        if keyword == "oneOf" and _are_exclusive(value, place):
            exclusive: list[object] = [{"anyOf": parts}]
            keyword, parts = ("allOf", exclusive) if "anyOf" in schema else ("anyOf", parts)
        result[keyword] = _joined(result, keyword, parts) if keyword == "allOf" else parts

    def _schemas(self, keyword: str, value: object, schema: Schema, place: _Place) -> list[object]:
        at = place.inner(keyword)
        if not isinstance(value, list) or not value:
            raise GrammarError(f"{at.path} must be a list of schemas, not empty")
        is_combined = keyword == "allOf" or (
            keyword in {"anyOf", "oneOf"} and (place.is_combined or "properties" in schema or "$ref" in schema)
        )
        return [self.schema(part, at.inner(str(index), is_combined=is_combined)) for index, part in enumerate(value)]

    def _properties(self, keyword: str, value: object, at: _Place) -> Schema:
        if not isinstance(value, dict):
            raise GrammarError(f"{at.path} must be an object of schemas")
        check_at_most(f"the number of properties at {at.path}", len(value), MAX_PROPERTIES)
        self._num_properties += len(value)
        check_at_most("the number of properties of the schema", self._num_properties, MAX_ALL_PROPERTIES)
        result: Schema = {}
        for name, part in value.items():
            check_at_most(f"the number of characters of a name at {at.path}", len(name), MAX_LITERAL_CHARS)
            written = search_pattern(name, f"the pattern at {at.path}") if keyword == "patternProperties" else name
            if written in result:
                raise GrammarError(f"{at.path} has {name!r} twice, in two spellings")
            result[written] = self.schema(part, at.inner(_escaped_name(name)))
        return result

    def _reference(self, value: object, place: _Place, *, is_combined: bool) -> str:
        if not isinstance(value, str):
            raise GrammarError(f"{place.path}/$ref must be a string")
        try:
            target = place.document.find(value, place.base)
        except (KeyError, ValueError):
            raise GrammarError(f"{place.path}/$ref refers to {value!r}, which is not in the schema") from None
        key = id(target), is_combined and self.is_strict
        if key not in self._names:
            self._names[key] = str(len(self._names) + 1)
            base = urljoin(place.base, value).partition("#")[0]
            self._pending.append((self._names[key], target, _Place(place.document, base, value, is_combined)))
        return f"#/$defs/{self._names[key]}"


def _are_exclusive(options: object, place: _Place) -> bool:
    assert isinstance(options, list)
    return are_disjoint(options, lambda reference: place.document.found(reference, place.base))


def _is_open_object(schema: Schema) -> bool:
    return "properties" in schema and not schema.keys() & {"additionalProperties", "patternProperties"}


def _combines(schema: Schema) -> bool:
    return bool(schema.keys() & _COMBINING)


def _escaped_name(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _check_reference_levels(root: Schema, definitions: Schema) -> None:
    """How deep references lead into one another, met for the first time; and none that leads only back to itself."""
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
    """The definitions referred to in here; enums and constants hold no schemas."""
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
    """Schemas with a pattern or a format that others on the same value may be joined with; some come twice."""
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
            is_joined = keyword in _COMBINING and (
                keyword == "allOf" or bool(value.keys() - {keyword, "type", "$defs"})
            )
            is_reference = keyword == "$ref" and isinstance(inner, str)
            target = definitions.get(_definition_name(str(inner))) if is_reference else inner
            pending.append((target, is_combined or is_joined))


def _read_format(value: object, path: str, schema: Schema, result: Schema) -> None:
    if not isinstance(value, str):
        raise GrammarError(f"{path} must be a string")
    if value in INTEGER_FORMATS:
        _check_is_for_integers(value, path, schema)
        minimum, maximum = INTEGER_FORMATS[value]
        result["minimum"] = _tightened("minimum", minimum, result)
        result["maximum"] = _tightened("maximum", maximum, result)
    elif value in INEXACT:
        exact: Schema = {"pattern": f"^(?:{PATTERNS[value]})$"}
        result.update(exact if "pattern" not in schema else {"allOf": _joined(result, "allOf", [exact])})
    elif value in PATTERNS:
        result["format"] = value
    elif value not in FORMATS_THAT_SAY_NOTHING:
        raise GrammarError(f"{path} must be one of {', '.join(sorted(PATTERNS))}, given {value!r}")


def _joined(result: Schema, keyword: str, parts: list[object]) -> list[object]:
    earlier = result.get(keyword)
    return [*earlier, *parts] if isinstance(earlier, list) else parts


def _check_is_for_integers(name: str, path: str, schema: Schema) -> None:
    types = schema.get("type")
    if "integer" not in (names := types if isinstance(types, list) else [types]) or "number" in names:
        raise GrammarError(f"{path} {name!r} must stand beside the type integer, given {types!r}")


def _check_num_properties(schema: Schema, path: str) -> None:
    """Names that are neither listed nor required may come twice in what the engine allows, and count as one."""
    required, least = schema.get("required"), schema.get("minProperties")
    limit = len({*required} if isinstance(required, list) else ()) + 1
    if isinstance(least, int | float) and least > limit:
        raise GrammarError(f"{path}/minProperties must be <= {limit}, one more than are required, given {least}")


def _tightened(keyword: str, value: object, schema: Schema) -> object:
    """The stricter of two bounds, where a `format` has set one."""
    other = schema.get(keyword)
    if isinstance(value, int | float) and isinstance(other, int | float):
        return max(value, other) if keyword == "minimum" else min(value, other) if keyword == "maximum" else value
    return value


def _check_type(value: object, path: str) -> None:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            raise GrammarError(f"{path} must be one of {', '.join(sorted(TYPES))}, given {name!r}")
    if not names:
        raise GrammarError(f"{path} must not be empty")


def _check_count(value: object, path: str) -> None:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if not is_whole or not isinstance(value, int | float) or value < 0:
        raise GrammarError(f"{path} must be an integer >= 0, given {value!r}")


def _check_number(value: object, path: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise GrammarError(f"{path} must be a number, given {value!r}")


def _check_exact(value: object, path: str) -> None:
    """The engine reads numbers without the last bit of care: exact are 53 bits times a power of ten up to 22."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    is_exact = isinstance(exponent, int) and exponent >= -22 and int(text) <= 2**53
    if not is_exact or abs(value) > MAX_NUMBER:
        raise GrammarError(
            f"{path} must be a number of at most 15 digits, down to 1e-22 and up to {MAX_NUMBER:.0e}, given {value!r}"
        )


def _check_bound(value: object, path: str) -> None:
    _check_number(value, path)
    if _for_engine(path.rpartition("/")[2], value) == value:
        _check_exact(value, path)


def _for_engine(keyword: str, value: object) -> object:
    """Upper bounds above what it can compare become stricter, so do lower bounds below; 2.0 items are 2."""
    if keyword == "pattern" and isinstance(value, str):
        return search_pattern(value, keyword)
    if keyword in COUNTS and isinstance(value, float):
        return int(value)
    if keyword in UPPER_BOUNDS and isinstance(value, int | float):
        return min(value, MAX_NUMBER)
    if keyword in LOWER_BOUNDS and isinstance(value, int | float):
        return max(value, -MAX_NUMBER)
    return value


def _check_divisor(value: object, path: str) -> None:
    _check_number(value, path)
    if isinstance(value, int | float) and value <= 0:
        raise GrammarError(f"{path} must be > 0, given {value!r}")
    _check_exact(value, path)


def _check_names(value: object, path: str) -> None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise GrammarError(f"{path} must be a list of strings")
    check_at_most(f"the number of names at {path}", len(value), MAX_PROPERTIES)


def _check_pattern(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise GrammarError(f"{path} must be a string")
    search_pattern(value, path)


def _check_constant(value: object, path: str) -> None:
    check_at_most(f"the number of characters of {path}", len(json.dumps(value, ensure_ascii=False)), MAX_LITERAL_CHARS)
    for part in _scalars(value):
        _check_exact(part, path)
        if isinstance(part, str) and not _UNSPEAKABLE.isdisjoint(part):
            raise GrammarError(f"{path} must hold no control characters but line ends, tabs and form feeds")


def _scalars(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    else:
        yield value


def _check_enum(value: object, path: str) -> None:
    if not isinstance(value, list) or not value:
        raise GrammarError(f"{path} must be a list of values, not empty")
    check_at_most(f"the number of values at {path}", len(value), MAX_ENUM_VALUES)
    for index, item in enumerate(value):
        _check_constant(item, f"{path}/{index}")


_CHECKS: dict[str, Callable[[object, str], None]] = {
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_constant,
    "required": _check_names,
    "pattern": _check_pattern,
    "multipleOf": _check_divisor,
    **dict.fromkeys(LOWER_BOUNDS | UPPER_BOUNDS, _check_bound),
    **dict.fromkeys(COUNTS, _check_count),
}

HONOURED = frozenset(_CHECKS) | {
    *("$ref", "format", "properties", "patternProperties", "additionalProperties"),
    *("items", "prefixItems", "additionalItems", "anyOf", "oneOf", "allOf"),
}
REFUSED = frozenset(_WITHOUT_EFFECT) - {"$dynamicAnchor", "$recursiveAnchor"}
"""Wherever they would mean something. What a document says about schemas can be held against these two."""
