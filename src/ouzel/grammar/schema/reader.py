"""Turns a client's JSON schema so that the engine honours it in full, or names keyword and place
of a refusal.

1. Annotations are dropped. Keywords that the engine lacks are refused, except where they have no
   effect (`uniqueItems: false`, `then` without `if`). Keys outside JSON Schema have no meaning by
   its rules; `strict` refuses them, and so misspelt keywords that would constrain nothing. Values
   that the engine would accept but not honour exactly are refused too: numbers that it rounds, and
   a `minProperties` above the number of required properties plus one (the engine lets a name
   repeat).
2. Every reference is resolved here; the result is self-contained, with all targets in `$defs`.
3. `strict` closes objects that list their properties (`additionalProperties: false`), as OpenAI's
   strict mode requires, except combined schemas, where a closed one would refuse properties that
   another requires.
"""

import json
from dataclasses import dataclass, field
from urllib.parse import urljoin

from ouzel.grammar.caps import (
    MAX_ALL_PROPERTIES,
    MAX_ENUM_VALUES,
    MAX_LITERAL_CHARS,
    MAX_PROPERTIES,
    check_at_most,
)
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.disjoint import are_disjoint
from ouzel.grammar.schema.keywords import ANNOTATIONS, COMBINING, WITHOUT_EFFECT
from ouzel.grammar.schema.limits import check_limits
from ouzel.grammar.schema.places import Place, index_document
from ouzel.grammar.schema.string_formats import INEXACT, PATTERNS
from ouzel.grammar.schema.values import CHECKS, ESCAPES, MAX_NUMBER, for_engine
from ouzel.grammar.write.regex import search_pattern

Schema = dict[str, object]

# The space between the parts of a value; small models get lost in more.
WHITESPACE = r"\x20|\r?\n[\x20\t]{0,32}"

FORMATS_THAT_SAY_NOTHING = frozenset(["float", "double", "password"])
INTEGER_FORMATS = {"int32": (-(2**31), 2**31 - 1), "int64": (-MAX_NUMBER, MAX_NUMBER)}


def normalise(schemas: list[object], *, is_strict: bool) -> Schema:
    """Returns one schema that admits any value that one of `schemas` admits.

    Raises GrammarError.
    """
    reader = _Reader(is_strict=is_strict)
    roots = [reader.document(schema) for schema in schemas]
    reader.read_references()
    single = roots[0] if len(roots) == 1 else {"anyOf": roots}
    if single is False:
        raise GrammarError("the schema false admits nothing")
    result: Schema = dict(single) if isinstance(single, dict) else {}
    if reader.definitions:
        result["$defs"] = reader.definitions
    check_limits(result, reader.definitions)
    return result


def as_lark(schema: Schema) -> str:
    return "%json " + json.dumps(
        {
            **schema,
            "x-guidance": {"whitespace_pattern": WHITESPACE, "json_allowed_escapes": ESCAPES},
        }
    )


@dataclass(slots=True)
class _Reader:
    is_strict: bool
    definitions: Schema = field(default_factory=dict)
    # names of definitions by (identity of the target, whether it is combined)
    _names: dict[tuple[int, bool], str] = field(default_factory=dict)
    _pending: list[tuple[str, object, Place]] = field(default_factory=list)
    _num_properties: int = 0
    _num_enum_values: int = 0

    def document(self, schema: object) -> object:
        return self.schema(schema, Place(index_document(schema), "", "#"))

    def read_references(self) -> None:
        while self._pending:
            name, schema, place = self._pending.pop()
            self.definitions[name] = self.schema(schema, place)

    def schema(self, schema: object, place: Place) -> object:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            raise GrammarError(f"the schema at {place.path} must be an object or a boolean")
        place = place.of(schema)
        result: Schema = {}
        for keyword, value in schema.items():
            if keyword not in ANNOTATIONS:
                self._keyword(keyword, value, schema, place, result)
        _check_num_properties(result, place.path)
        if (
            self.is_strict
            and _is_open_object(result)
            and not place.is_combined
            and not _combines(result)
        ):
            result["additionalProperties"] = False
        return result

    def _keyword(
        self, keyword: str, value: object, schema: Schema, place: Place, result: Schema
    ) -> None:
        at = place.inner(keyword)
        if keyword in WITHOUT_EFFECT:
            if not WITHOUT_EFFECT[keyword](value, schema):
                raise GrammarError(f"the keyword {keyword!r} at {place.path} is not supported")
        elif keyword in CHECKS:
            CHECKS[keyword](value, at.path)
            self._num_enum_values += (
                len(value) if keyword == "enum" and isinstance(value, list) else 0
            )
            check_at_most(
                "the number of enum values of the schema", self._num_enum_values, MAX_ENUM_VALUES
            )
            result[keyword] = _tighten(keyword, for_engine(keyword, value), result)
        elif keyword == "$ref":
            result[keyword] = self._reference(
                value, place, is_combined=place.is_combined or len(schema) > 1
            )
        elif keyword in {"properties", "patternProperties"}:
            result[keyword] = self._properties(keyword, value, at)
        elif keyword in {"items", "prefixItems", "additionalItems", "additionalProperties"}:
            self._contents(keyword, value, schema, place, result)
        elif keyword in {"anyOf", "oneOf", "allOf"}:
            self._combination(keyword, value, schema, place, result)
        elif keyword == "format":
            _read_format(value, at.path, schema, result)
        elif self.is_strict and not keyword.startswith("x-"):
            raise GrammarError(
                f"the keyword {keyword!r} at {place.path} is not supported in strict mode"
            )

    def _contents(
        self, keyword: str, value: object, schema: Schema, place: Place, result: Schema
    ) -> None:
        """Reads the contents of arrays and objects; rewrites the older form of tuples as the newer.

        The engine ignores `prefixItems` if it sees both forms.
        """
        is_older = isinstance(schema.get("items"), list)
        if is_older and "prefixItems" in schema:
            raise GrammarError(f"{place.path}/items must be one schema beside prefixItems")
        if keyword == "prefixItems" or (keyword == "items" and is_older):
            result["prefixItems"] = self._schemas(keyword, value, schema, place)
            return
        contents = self.schema(value, place.inner(keyword))
        if keyword != "additionalItems":
            result[keyword] = contents
        elif is_older:  # otherwise it has no meaning
            result["items"] = contents

    def _combination(
        self, keyword: str, value: object, schema: Schema, place: Place, result: Schema
    ) -> None:
        """Reads a combination; turns `oneOf` into `anyOf` if no two options can hold at once.

        The engine recognises that only in a few cases.
        """
        parts = self._schemas(keyword, value, schema, place)
        if keyword == "oneOf" and _are_exclusive(value, place):
            exclusive: list[object] = [{"anyOf": parts}]
            keyword, parts = ("allOf", exclusive) if "anyOf" in schema else ("anyOf", parts)
        result[keyword] = _join(result, keyword, parts) if keyword == "allOf" else parts

    def _schemas(self, keyword: str, value: object, schema: Schema, place: Place) -> list[object]:
        at = place.inner(keyword)
        if not isinstance(value, list) or not value:
            raise GrammarError(f"{at.path} must be a non-empty list of schemas")
        is_combined = keyword == "allOf" or (
            keyword in {"anyOf", "oneOf"}
            and (place.is_combined or "properties" in schema or "$ref" in schema)
        )
        return [
            self.schema(part, at.inner(str(index), is_combined=is_combined))
            for index, part in enumerate(value)
        ]

    def _properties(self, keyword: str, value: object, at: Place) -> Schema:
        if not isinstance(value, dict):
            raise GrammarError(f"{at.path} must be an object of schemas")
        check_at_most(f"the number of properties at {at.path}", len(value), MAX_PROPERTIES)
        self._num_properties += len(value)
        check_at_most(
            "the number of properties of the schema", self._num_properties, MAX_ALL_PROPERTIES
        )
        result: Schema = {}
        for name, part in value.items():
            check_at_most(
                f"the number of characters of a name at {at.path}", len(name), MAX_LITERAL_CHARS
            )
            written = (
                search_pattern(name, f"the pattern at {at.path}")
                if keyword == "patternProperties"
                else name
            )
            if written in result:
                raise GrammarError(f"{at.path} has {name!r} twice, in two spellings")
            result[written] = self.schema(part, at.inner(_escaped_name(name)))
        return result

    def _reference(self, value: object, place: Place, *, is_combined: bool) -> str:
        if not isinstance(value, str):
            raise GrammarError(f"{place.path}/$ref must be a string")
        try:
            target = place.document.find(value, place.base)
        except (KeyError, ValueError):
            raise GrammarError(
                f"{place.path}/$ref refers to {value!r}, which is not in the schema"
            ) from None
        key = id(target), is_combined and self.is_strict
        if key not in self._names:
            self._names[key] = str(len(self._names) + 1)
            base = urljoin(place.base, value).partition("#")[0]
            self._pending.append(
                (self._names[key], target, Place(place.document, base, value, is_combined))
            )
        return f"#/$defs/{self._names[key]}"


def _are_exclusive(options: object, place: Place) -> bool:
    assert isinstance(options, list)
    return are_disjoint(
        options, lambda reference: place.document.find_or_none(reference, place.base)
    )


def _is_open_object(schema: Schema) -> bool:
    return "properties" in schema and not schema.keys() & {
        "additionalProperties",
        "patternProperties",
    }


def _combines(schema: Schema) -> bool:
    return bool(schema.keys() & COMBINING)


def _escaped_name(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _read_format(value: object, path: str, schema: Schema, result: Schema) -> None:
    if not isinstance(value, str):
        raise GrammarError(f"{path} must be a string")
    if value in INTEGER_FORMATS:
        _check_is_for_integers(value, path, schema)
        minimum, maximum = INTEGER_FORMATS[value]
        result["minimum"] = _tighten("minimum", minimum, result)
        result["maximum"] = _tighten("maximum", maximum, result)
    elif value in INEXACT:
        exact: Schema = {"pattern": f"^(?:{PATTERNS[value]})$"}
        result.update(
            exact if "pattern" not in schema else {"allOf": _join(result, "allOf", [exact])}
        )
    elif value in PATTERNS:
        result["format"] = value
    elif value not in FORMATS_THAT_SAY_NOTHING:
        raise GrammarError(f"{path} must be one of {', '.join(sorted(PATTERNS))}, given {value!r}")


def _join(result: Schema, keyword: str, parts: list[object]) -> list[object]:
    earlier = result.get(keyword)
    return [*earlier, *parts] if isinstance(earlier, list) else parts


def _check_is_for_integers(name: str, path: str, schema: Schema) -> None:
    types = schema.get("type")
    if (
        "integer" not in (names := types if isinstance(types, list) else [types])
        or "number" in names
    ):
        raise GrammarError(f"{path} {name!r} must stand beside the type integer, given {types!r}")


def _check_num_properties(schema: Schema, path: str) -> None:
    """Raises GrammarError if a repeated name, which the engine allows, could satisfy
    `minProperties`.
    """
    required, least = schema.get("required"), schema.get("minProperties")
    limit = len({*required} if isinstance(required, list) else ()) + 1
    if isinstance(least, int | float) and least > limit:
        raise GrammarError(
            f"{path}/minProperties must be <= {limit}, the number of required properties plus "
            f"one, given {least}"
        )


def _tighten(keyword: str, value: object, schema: Schema) -> object:
    """Returns the stricter of two bounds, if a `format` has set one."""
    other = schema.get(keyword)
    if isinstance(value, int | float) and isinstance(other, int | float):
        if keyword == "minimum":
            return max(value, other)
        if keyword == "maximum":
            return min(value, other)
    return value
