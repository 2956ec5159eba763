"""Keywords of JSON schemas are honoured, refused by name, or left out if they constrain nothing."""

import re
from pathlib import Path

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.schema.keywords import HONOURED, REFUSED
from ouzel.grammar.schema.reader import INTEGER_FORMATS, normalise
from ouzel.grammar.schema.string_formats import PATTERNS

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "structured-output.md"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "the schema at # must be an object or a boolean"),
        ([], "the schema at # must be an object or a boolean"),
        (False, "the schema false admits nothing"),
        (
            {"properties": {"tags": {"uniqueItems": True}}},
            "the keyword 'uniqueItems' at #/properties/tags",
        ),
        ({"not": {}}, "the keyword 'not' at # is not supported"),
        ({"if": {}, "then": {}}, "the keyword 'if' at #"),
        ({"anyOf": [{"contains": {}}]}, "the keyword 'contains' at #/anyOf/0"),
        ({"$dynamicRef": "#a"}, "the keyword .*dynamicRef' at #"),
        (
            {"items": {"format": "uri-reference"}},
            "#/items/format must be one of .*given 'uri-reference'",
        ),
        ({"type": "sting"}, "#/type must be one of .*given 'sting'"),
        ({"enum": []}, "#/enum must be a non-empty list of values"),
        ({"anyOf": {}}, "#/anyOf must be a non-empty list of schemas"),
        ({"properties": []}, "#/properties must be an object of schemas"),
        ({"properties": {"a/b": 1}}, "the schema at #/properties/a~1b must be"),
        ({"minLength": -1}, "#/minLength must be an integer >= 0, given -1"),
        ({"minLength": 1.5}, "#/minLength must be an integer >= 0, given 1.5"),
        ({"minimum": "1"}, "#/minimum must be a number, given '1'"),
        ({"multipleOf": 0}, "#/multipleOf must be > 0, given 0"),
        ({"multipleOf": 2**53 + 1}, "#/multipleOf must be a number of at most 15 digits"),
        ({"multipleOf": 99400891}, "#/multipleOf without .* must be <= 10000, given 99400891"),
        (
            {"items": {"multipleOf": 0.12345}},
            "#/items/multipleOf without .* must be <= 10000, given 12345",
        ),
        (
            {"prefixItems": [{"multipleOf": n} for n in range(51, 251, 2)]},
            "and added up, must be <= 10000, given 15000",
        ),
        (
            {"allOf": [{"multipleOf": n} for n in (97, 8, 83)]},
            "and multiplied, must be <= 10000, given 64408",
        ),
        (
            {"multipleOf": 83, "allOf": [{"multipleOf": 97}, {"multipleOf": 8}]},
            "and multiplied, must be <= 10000, given 64408",
        ),
        (
            {
                "properties": {"a": {"multipleOf": 83}},
                "allOf": [
                    {"additionalProperties": {"anyOf": [{"multipleOf": 97}, {"multipleOf": 8}]}}
                ],
            },
            "and multiplied, must be <= 10000, given 64408",
        ),
        (
            {"properties": {"const": {"multipleOf": 99}, "enum": {"multipleOf": 9973}}},
            "added up, must be <= 10000, given",
        ),
        (
            {"properties": {"const": {"allOf": [{"multipleOf": n} for n in (97, 8, 83)]}}},
            "and multiplied, must be",
        ),
        ({"minimum": 2**63}, "#/minimum must be a number of at most 15 digits"),
        ({"maximum": 1e-300}, "#/maximum must be a number of at most 15 digits"),
        ({"const": [1, {"a": 2**53 + 1}]}, "#/const must be a number of at most 15 digits"),
        ({"enum": ["a", "\u0001"]}, "#/enum/1 must have no control characters"),
        ({"format": "int32"}, "#/format 'int32' must stand beside the type integer, given None"),
        (
            {"required": ["a", "a"], "minProperties": 3},
            "#/minProperties must be <= 2, the number of required properties plus one",
        ),
        ({"required": "a"}, "#/required must be a list of strings"),
        ({"pattern": r"a\b"}, "#/pattern has the word boundary"),
        ({"patternProperties": {"(?!x)": {}}}, "#/patternProperties has look-around"),
        ({"$ref": "#/$defs/x"}, "'#/.defs/x', which is not in the schema"),
        ({"$ref": "https://example.com/schema"}, "which is not in the schema"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "leads only back to itself"),
        ({"const": "x" * 10_300}, "#/const must be <= 10240, given 10302"),
        (
            {"required": [str(n) for n in range(1001)]},
            "the number of names at #/required must be <= 1000, given 1001",
        ),
        ({"enum": list(range(10_001))}, "#/enum must be <= 10000, given 10001"),
        (
            {"properties": {str(n): True for n in range(1001)}},
            "properties at #/properties must be <= 1000, given 1001",
        ),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused_by_keyword_and_place(
    schema: object, message: str
) -> None:
    with pytest.raises(GrammarError, match=message):
        normalise([schema], is_strict=False)


def test_multiples_of_numbers_with_few_digits_are_supported_in_any_number() -> None:
    each = [{"multipleOf": value} for value in (0.01, 1000, 5000, 9973, 9.973, 0.5)]
    normalise([{"items": {"anyOf": each}, "const": {"multipleOf": 99400891}}], is_strict=False)


FIELDS: dict[str, object] = {
    "price": {"type": "number", "multipleOf": 0.25},
    "quantity": {"type": "integer", "multipleOf": 12},
    "minutes": {"type": "integer", "multipleOf": 15},
    "weight": {"type": "number", "multipleOf": 0.05},
    **{f"at_{number}": {"type": "string", "format": "date-time"} for number in range(20)},
}


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"item": {"allOf": [{"$ref": "#/$defs/item"}], "description": "x"}},
        },
        {"type": "object", "allOf": [{"$ref": "#/$defs/item"}]},
        {"allOf": [{"$ref": "#/$defs/item"}, {"required": ["price"]}]},
        {"properties": {"size": {"multipleOf": 7}}, "allOf": [{"$ref": "#/$defs/item"}]},
        {"type": "array", "allOf": [{"prefixItems": [*FIELDS.values()]}, {"minItems": 2}]},
    ],
    ids=["alone in allOf", "beside its type", "with others", "beside properties", "in an array"],
)
def test_the_costs_of_different_values_do_not_add_up(schema: dict[str, object]) -> None:
    normalise(
        [schema | {"$defs": {"item": {"type": "object", "properties": FIELDS}}}], is_strict=False
    )


def test_a_constant_is_no_schema_that_can_be_referred_to() -> None:
    constants = {name: {"$anchor": "a", "$id": "b"} for name in ("const", "default")} | {
        "enum": [{"$anchor": "a"}]
    }
    meant = {
        "$defs": {
            "const": {"$anchor": "a", "type": "integer"},
            "default": {"$id": "b", "type": "null"},
        }
    }
    for schema in (constants | meant, meant | constants):
        read = normalise(
            [schema | {"prefixItems": [{"$ref": "#a"}, {"$ref": "b"}]}], is_strict=False
        )
        assert read["$defs"] == {"1": {"type": "integer"}, "2": {"type": "null"}}


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        (
            {"title": "x", "uniqueItems": False, "nullable": True, "x-guidance": {"lenient": True}},
            {},
        ),
        ({"type": "string", "format": "password"}, {"type": "string"}),
        (
            {"type": "integer", "format": "int32", "minimum": 1, "maximum": 2**40},
            {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
        ),
        ({"minimum": -(2**63), "maximum": 2**63 - 1}, {"minimum": -(10**18), "maximum": 10**18}),
        ({"oneOf": [{}], "xml": {}, "discriminator": {"propertyName": "kind"}}, {"anyOf": [{}]}),
        ({"properties": {"title": {"default": 1}}}, {"properties": {"title": {}}}),
        ({"enum": [{"title": "kept"}]}, {"enum": [{"title": "kept"}]}),
        ({"definitions": {"unused": {"not": {}}}}, {}),
        ({"$ref": "#/x/y", "x": {"y": {"title": "a"}}}, {"$ref": "#/$defs/1", "$defs": {"1": {}}}),
        (True, {}),
    ],
)
def test_keywords_without_effect_are_left_out(schema: object, result: object) -> None:
    assert normalise([schema], is_strict=False) == result


@pytest.mark.parametrize(
    ("schema", "result"),
    [
        ({"properties": {"a": {}}}, {"properties": {"a": {}}, "additionalProperties": False}),
        (
            {"properties": {"a": {}}, "additionalProperties": True},
            {"properties": {"a": {}}, "additionalProperties": True},
        ),
        ({"allOf": [{"properties": {"a": {}}}]}, {"allOf": [{"properties": {"a": {}}}]}),
        ({"type": "object"}, {"type": "object"}),
    ],
)
def test_strict_closes_objects_that_list_properties_and_stand_alone(
    schema: object, result: object
) -> None:
    assert normalise([schema], is_strict=True) == result


def test_strict_refuses_a_misspelt_keyword() -> None:
    with pytest.raises(GrammarError, match="'requried' at #/items is not supported in strict mode"):
        normalise([{"items": {"requried": ["a"]}}], is_strict=True)


def test_a_definition_referred_to_from_a_combination_stays_open_there() -> None:
    schema = {
        "$defs": {"a": {"properties": {"x": {}}}},
        "allOf": [{"$ref": "#/$defs/a"}, {"required": ["y"]}],
    }
    assert normalise([schema], is_strict=True)["$defs"] == {"1": {"properties": {"x": {}}}}


def test_references_within_references_have_a_limit() -> None:
    chain = {
        str(n): {"properties": {"const": {"$ref": f"#/$defs/{n + 1}"}}} for n in range(250)
    } | {"250": {}}
    with pytest.raises(
        GrammarError, match="references within references must be <= 200, given 201"
    ):
        normalise([{"$defs": chain, "$ref": "#/$defs/0"}], is_strict=False)


def test_the_document_lists_the_keywords_and_formats() -> None:
    lines = DOCUMENT.read_text().splitlines()

    def names(begin: str) -> set[str]:
        [line] = [line for line in lines if line.startswith(begin)]
        return set(re.findall(r"`([^`]+)`", line.removeprefix(begin)))

    assert names("| honoured |") == HONOURED
    assert names("| refused |") | {"then", "else", "minContains", "maxContains"} == REFUSED
    assert names("| values of `format` |") == {*PATTERNS, *INTEGER_FORMATS}


def _pattern(number: int) -> dict[str, object]:
    return {"type": "string", "pattern": f"a{number}.{{0,100}}b"}


def _within(number: int) -> dict[str, object]:
    return {**_pattern(number), "anyOf": [_within(number - 1)]} if number else _pattern(0)


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [_pattern(number) for number in range(17)]},
        {"allOf": [{"properties": {"enum": _pattern(number)}} for number in range(17)]},
        {
            "allOf": [{"$ref": f"#/$defs/{number}"} for number in range(17)],
            "$defs": {str(number): _pattern(number) for number in range(17)},
        },
        _within(17),
    ],
    ids=["parts", "properties of parts", "references", "alternatives within alternatives"],
)
def test_patterns_that_are_combined_have_a_limit(schema: object) -> None:
    """The native code that joins 30 patterns does not end, and its memory grows."""
    with pytest.raises(
        GrammarError,
        match="patterns and formats in combined schemas for one value must be <= 16, given 17",
    ):
        normalise([schema], is_strict=False)


def test_patterns_beside_each_other_are_not_combined() -> None:
    properties = {str(number): _pattern(number) for number in range(100)}
    normalise(
        [{"type": "object", "properties": properties, "anyOf": [{"required": ["1"]}]}],
        is_strict=False,
    )
    normalise([{"anyOf": list(properties.values())}], is_strict=False)
