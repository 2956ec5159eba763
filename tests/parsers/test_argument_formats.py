"""Checks grammars of formats other than JSON: the forced arguments obey the tool's schema."""

import json

import jsonschema
import numpy as np
import pytest

from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.types.tools import FunctionTool
from tests.grammar.runs import random_walk, started
from tests.parsers.cutting import parse

SCHEMAS: dict[str, dict[str, object]] = {
    "many kinds": {
        "type": "object",
        "$defs": {"level": {"enum": ["low", "high", "1"]}},
        "properties": {
            "city": {"type": "string", "maxLength": 8},
            "days": {"type": "integer", "minimum": -5, "maximum": 5},
            "level": {"$ref": "#/$defs/level"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
            "where": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "y": {"type": "null"}},
                "required": ["x"],
                "additionalProperties": False,
            },
            "maybe": {"anyOf": [{"type": "string", "maxLength": 4}, {"type": "null"}]},
            "flag": {"type": "boolean"},
        },
        "required": ["days", "where"],
        "additionalProperties": False,
    },
    "all optional": {
        "type": "object",
        "properties": {
            "a": {"type": "boolean"},
            "ab": {"const": 5},
            "c-d e/f": {"enum": ["x", None, 2]},
        },
        "additionalProperties": False,
    },
    "bounded strings": {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "code": {"type": "string", "pattern": "^[a-z]{2}[0-9]$"},
            "name": {"type": "string", "minLength": 2, "maxLength": 3},
        },
        "required": ["day", "code", "name"],
    },
}
SCHEMAS_OF_THEIR_OWN: dict[str, dict[str, object]] = {
    "any arguments": {"type": "object", "maxProperties": 2},
    "one of two": {
        "anyOf": [
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}},
            {
                "type": "object",
                "properties": {"b": {"type": "null"}},
                "additionalProperties": False,
            },
        ]
    },
}
XML = ["qwen3_coder", "glm45", "minicpm5"]
LITERAL = ["lfm2", "olmo3", "llama4_pythonic", "pythonic", "gemma4", "functiongemma"]
CASES = [(name, title) for name in XML + LITERAL for title in SCHEMAS]
CASES += [(name, title) for name in LITERAL for title in SCHEMAS_OF_THEIR_OWN]


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize(("name", "title"), CASES)
def test_forced_arguments_obey_the_schema(name: str, title: str, is_strict: bool) -> None:
    schema = (SCHEMAS | SCHEMAS_OF_THEIR_OWN)[title]
    family = next(family for family in FAMILIES if name in family.names)
    assert family.calls is not None
    tool = FunctionTool("f", parameters=schema, strict=is_strict)
    elements = [
        {"type": "const_string", "value": family.calls.before},
        family.calls.call_format(tool),
    ]
    elements.append({"type": "const_string", "value": family.calls.after})
    session, random = started({"type": "sequence", "elements": elements}), np.random.default_rng(0)
    texts = [text for _ in range(12) if (text := random_walk(session, random))]
    assert len(texts) > 1
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for text in texts:
        folded = parse(lambda: OutputFormat(calls=family).make_parser([tool], ""), list(text))
        assert folded.content == "" and len(folded.calls) == 1, text
        validator.validate(json.loads(folded.calls[0][1]))
