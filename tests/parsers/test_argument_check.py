"""Arguments are checked against the schemas of tools; jsonschema is the reference."""

import itertools
from typing import Any  # JSON of any shape

import pytest

from ouzel.parsers.argument_check import ArgumentCheck
from tests.grammar.validity import make_validator

Json = dict[str, object]

STRING, NUMBER = {"type": "string"}, {"type": "number"}
SCHEMAS: dict[str, Json] = {
    "anything": {},
    "an object": {"type": "object"},
    "types": {
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "integer"},
            "c": {"type": "boolean"},
        }
    },
    "required": {"properties": {"a": STRING}, "required": ["a", "b"]},
    "closed": {"properties": {"a": STRING}, "additionalProperties": False},
    "closed without properties": {"additionalProperties": False},
    "others of a type": {"properties": {"a": STRING}, "additionalProperties": NUMBER},
    "enum": {"properties": {"a": {"enum": ["x", 1, None]}, "b": {"const": True}}},
    "items": {
        "properties": {"a": {"type": "array", "items": NUMBER, "minItems": 1, "maxItems": 2}}
    },
    "bounds": {
        "properties": {
            "b": {"minimum": 0, "exclusiveMaximum": 2},
            "a": {"minLength": 1, "maxLength": 3},
        }
    },
    "any of": {"properties": {"a": {"anyOf": [STRING, {"type": "array", "items": STRING}]}}},
    "one of": {"properties": {"a": {"oneOf": [STRING, {"type": "null"}]}}},
    "all of": {"properties": {"a": {"allOf": [STRING, {"minLength": 2}]}}},
    "a reference": {
        "properties": {"a": {"$ref": "#/$defs/s"}},
        "$defs": {"s": {"type": "string", "title": "S"}},
    },
    "a list of itself": {
        "properties": {"a": {"type": "array", "items": {"$ref": "#"}}, "b": NUMBER}
    },
    "false": {"properties": {"a": False}},
}
MEMBERS: list[Any] = [
    "",
    "x",
    "long text",
    0,
    1,
    1.0,
    2.5,
    -3,
    True,
    None,
    [],
    [1],
    ["x"],
    [{"b": "x"}],
    {"a": 1},
]
VALUES: list[Any] = [
    {},
    *({"a": member} for member in MEMBERS),
    *({"b": member} for member in MEMBERS),
    *({"a": first, "b": second} for first, second in itertools.product(MEMBERS, MEMBERS)),
    {"c": True},
    {"c": 1},
]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_complete_check_agrees_with_the_validator(schema: Json) -> None:
    validator = make_validator(schema)
    for value in VALUES:
        check = ArgumentCheck(schema)
        assert check.obeys(value) is validator.is_valid(value), value
        assert check.says_all, value


def test_integers_may_be_written_as_fractions() -> None:
    assert ArgumentCheck({"type": "integer"}).obeys(2.0)
    assert not ArgumentCheck({"type": "integer"}).obeys(True)
    assert not ArgumentCheck({"type": "integer"}).obeys(float("inf"))


def test_unchecked_keywords_are_reported() -> None:
    check = ArgumentCheck({"properties": {"a": {"type": "string", "pattern": "^x"}}})

    assert check.obeys({})
    assert check.says_all
    assert check.obeys({"a": "y"})
    assert not check.says_all


def test_a_strict_schema_is_closed_unless_it_says_otherwise() -> None:
    inner: Json = {"type": "object", "properties": {"b": NUMBER}}
    schema: Json = {"type": "object", "properties": {"a": inner}, "additionalProperties": True}

    assert ArgumentCheck(schema).obeys({"a": {"c": 1}})
    assert not ArgumentCheck(schema, is_strict=True).obeys({"a": {"c": 1}})
    assert ArgumentCheck(schema, is_strict=True).obeys({"a": {"b": 1}, "c": 1})


def test_references_without_end_are_refused() -> None:
    doubled: Json = {"anyOf": [{"$ref": "#/$defs/d"}, {"$ref": "#/$defs/d"}]}
    loops: list[Json] = [{"$ref": "#"}, {"$defs": {"d": doubled}, "$ref": "#/$defs/d"}]
    for schema in loops:
        assert not ArgumentCheck(schema).obeys({"a": 1})


def test_a_schema_that_doubles_itself_ends() -> None:
    levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(40)}
    schema: Json = {"$defs": {**levels, "l40": {"type": "string"}}, "$ref": "#/$defs/l0"}

    assert not ArgumentCheck(schema).obeys({})


def test_broken_schemas_break_nothing() -> None:
    broken: list[Json] = [
        {"type": 3},
        {"enum": 3},
        {"required": 3},
        {"required": [3]},
        {"properties": []},
        {"items": 3},
        {"anyOf": 3},
        {"minLength": "x"},
        {"$ref": 3},
        {"$ref": "#/nowhere"},
        {"$ref": "http://example.com/"},
    ]
    for schema, value in itertools.product(broken, ({}, {"a": "x"})):
        ArgumentCheck(schema).obeys(value)
        ArgumentCheck({"properties": {"a": schema}}).obeys(value)


PERSON: Json = {"type": "object", "properties": {"name": STRING}, "required": ["name"]}
WITH_A_PERSON: dict[str, Json] = {
    "itself": {"properties": {"who": PERSON}},
    "a reference": {"properties": {"who": {"$ref": "#/$defs/p"}}, "$defs": {"p": PERSON}},
    "a reference with a title": {
        "properties": {"who": {"$ref": "#/$defs/a%20person", "title": "P"}},
        "$defs": {"a person": PERSON},
    },
    "or nothing": {"properties": {"who": {"anyOf": [PERSON, {"type": "null"}]}}},
    "one of": {"properties": {"who": {"oneOf": [PERSON, {"type": "null"}]}}},
}


@pytest.mark.parametrize("schema", WITH_A_PERSON.values(), ids=WITH_A_PERSON)
def test_a_strict_check_closes_the_objects_whose_properties_are_listed(schema: Json) -> None:
    assert ArgumentCheck(schema, is_strict=True).obeys({"who": {"name": "Ann"}})
    for other in ({"who": {"name": "Ann", "age": 3}}, {"who": {"name": "Ann"}, "when": 1}):
        assert not ArgumentCheck(schema, is_strict=True).obeys(other)
        assert ArgumentCheck(schema).obeys(other)


def test_a_strict_check_closes_no_object_that_two_schemas_describe() -> None:
    aged: Json = {"type": "object", "properties": {"age": NUMBER}, "required": ["age"]}

    check = ArgumentCheck({"allOf": [PERSON, aged]}, is_strict=True)

    assert check.obeys({"name": "Ann", "age": 3})
    assert not check.obeys({"name": "Ann"})


@pytest.mark.parametrize(
    "keyword",
    [
        {"required": [["a"], {}, 1]},
        {"enum": {}},
        {"type": [{}]},
        {"anyOf": {}},
        {"items": 1},
        {"$ref": "#a"},
    ],
)
def test_a_schema_that_is_none_raises_nothing(keyword: Json) -> None:
    ArgumentCheck({"type": "object", "properties": {"a": keyword}, **keyword}).obeys(
        {"a": {"a": [1]}}
    )
