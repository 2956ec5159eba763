"""Compares tables of docs/how-to/tools.md and docs/how-to/structured-output.md with the code."""

import re
from pathlib import Path

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import FAMILIES, PARAMETER_STYLES
from tests.serve.answers import Json

DOCS = Path(__file__).parent.parent / "docs" / "how-to"
TOOLS, FORMS = (DOCS / "tools.md").read_text(), (DOCS / "structured-output.md").read_text()
HONOURED: dict[str, Json] = {
    "type": {"type": "null"},
    "enum": {"enum": [1]},
    "const": {"const": 1},
    "properties": {"properties": {"a": True}},
    "required": {"required": ["a"]},
    "additionalProperties": {"additionalProperties": False},
    "patternProperties": {"patternProperties": {"^a": {}}},
    "minProperties": {"minProperties": 1},
    "maxProperties": {"type": "object", "maxProperties": 1},
    "items": {"items": {"type": "null"}},
    "prefixItems": {"prefixItems": [{"type": "null"}]},
    "additionalItems": {"items": [{"type": "null"}], "additionalItems": False},
    "minItems": {"minItems": 1},
    "maxItems": {"maxItems": 1},
    "minLength": {"minLength": 1},
    "maxLength": {"maxLength": 1},
    "pattern": {"pattern": "a"},
    "format": {"format": "date"},
    "minimum": {"minimum": 1},
    "maximum": {"maximum": 1},
    "exclusiveMinimum": {"exclusiveMinimum": 1},
    "exclusiveMaximum": {"exclusiveMaximum": 1},
    "multipleOf": {"multipleOf": 2},
    "anyOf": {"anyOf": [{"type": "null"}]},
    "oneOf": {"oneOf": [{"type": "null"}]},
    "allOf": {"allOf": [{"type": "null"}]},
    "$ref": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}},
}
REFUSED: dict[str, Json] = {
    "not": {"not": {"type": "null"}},
    "if": {"if": {"type": "null"}, "then": False},
    "contains": {"contains": {"type": "null"}},
    "uniqueItems": {"uniqueItems": True},
    "propertyNames": {"propertyNames": {"maxLength": 3}},
    "unevaluatedItems": {"unevaluatedItems": False},
    "unevaluatedProperties": {"unevaluatedProperties": False},
    "dependentRequired": {"dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {"dependentSchemas": {"a": {"required": ["b"]}}},
    "dependencies": {"dependencies": {"a": ["b"]}},
    "$dynamicRef": {"$dynamicRef": "#a"},
    "$recursiveRef": {"$recursiveRef": "#"},
}


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def rows(text: str, heading: str) -> list[list[str]]:
    """Returns the cells of the first table below the heading."""
    table = text.split(f"\n## {heading}\n")[1].split("\n|---")[1].split("\n\n", maxsplit=1)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[1:]]


def compiled(format: Json) -> str:
    return compile_format(
        format, GrammarVocabulary({}, 1000), strict=False, styles=PARAMETER_STYLES
    )


def test_every_family_has_its_row() -> None:
    expected = [
        (list(family.names), family.calls is not None, family.reasoning is not None)
        for family in FAMILIES
    ]

    found = rows(TOOLS, "Formats of calls and reasoning")

    assert [
        (quoted(names), calls == "yes", reasoning == "yes") for names, _, calls, reasoning in found
    ] == expected


def test_every_format_has_its_row() -> None:
    with pytest.raises(GrammarError) as refusal:
        compiled({"type": "none of them"})
    known = str(refusal.value).partition("must be one of ")[2].partition(", given")[0].split(", ")

    assert sorted(name for row in rows(FORMS, "Formats") for name in quoted(row[0])) == sorted(
        known
    )


def test_the_documented_keywords_are_the_tested_ones() -> None:
    listed = {kind: quoted(names) for kind, names in rows(FORMS, "JSON schemas")}

    assert (listed["honoured"], listed["refused"]) == (list(HONOURED), list(REFUSED))


@pytest.mark.parametrize("keyword", HONOURED)
def test_a_supported_keyword_is_part_of_the_grammar(keyword: str) -> None:
    schema = HONOURED[keyword]
    without = {name: value for name, value in schema.items() if name != keyword}

    grammar = compiled({"type": "json_schema", "json_schema": schema})

    assert grammar != compiled({"type": "json_schema", "json_schema": without})


@pytest.mark.parametrize("keyword", REFUSED)
def test_a_refused_keyword_is_named(keyword: str) -> None:
    with pytest.raises(
        GrammarError, match=f"the keyword '{re.escape(keyword)}' at # is not supported"
    ):
        compiled({"type": "json_schema", "json_schema": REFUSED[keyword]})
