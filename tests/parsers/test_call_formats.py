"""Checks with random texts that each family's parser reads the calls that its grammar forces."""

import json
import re

import msgspec
import numpy as np
import pytest

from ouzel.parsers.base import Calls, Format
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.types.tools import FunctionTool, TextGrammar
from tests.grammar.runs import random_walk, started
from tests.parsers.cutting import parse

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 12},
        "numbers": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    },
    "required": ["text", "numbers"],
    "additionalProperties": False,
}
LINES = TextGrammar("lark", 'start: LINE+\nLINE: "+" /[a"\\\\é]{0,3}/ "\\n"')
CUSTOM = FunctionTool(
    "patch", parameters={"properties": {"input": {"type": "string"}}}, is_custom=True
)
TOOLS = (FunctionTool("get-weather_2", parameters=SCHEMA), FunctionTool("ping"))
WITH_CALLS = {family.names[0]: family for family in FAMILIES if family.calls is not None}


def forced(calls: Calls) -> Format:
    """Returns the format that forces one call of each tool."""
    first, second = map(calls.call_format, TOOLS)
    texts = [calls.before, first, calls.separator, second, calls.after]
    elements = [
        {"type": "const_string", "value": item} if isinstance(item, str) else item for item in texts
    ]
    return {"type": "sequence", "elements": elements}


@pytest.mark.parametrize("name", WITH_CALLS)
def test_forced_calls_are_read(name: str) -> None:
    family = WITH_CALLS[name]
    assert family.calls is not None
    session, random = started(forced(family.calls)), np.random.default_rng(0)
    texts = [text for _ in range(8) if (text := random_walk(session, random))]
    assert texts
    for text in texts:
        folded = parse(lambda: OutputFormat(calls=family).make_parser(TOOLS, ""), list(text))
        assert (folded.content, [name for name, _ in folded.calls]) == (
            "",
            [tool.name for tool in TOOLS],
        ), text
        given, nothing = (json.loads(arguments) for _, arguments in folded.calls)
        assert nothing == {}
        assert given.keys() == {"text", "numbers"} and len(given["text"]) <= 12, text


@pytest.mark.parametrize("name", WITH_CALLS)
def test_the_text_of_a_custom_tool_is_of_its_grammar_and_read(name: str) -> None:
    family = WITH_CALLS[name]
    assert family.calls is not None
    tool = msgspec.structs.replace(CUSTOM, text_grammar=LINES)
    random = np.random.default_rng(0)
    session = started(family.calls.call_format(tool))
    texts = [text for _ in range(4) if (text := random_walk(session, random))]
    assert texts
    for text in texts:
        written = family.calls.before + text + family.calls.after
        [(called, given)] = parse(
            lambda: OutputFormat(calls=family).make_parser([tool], ""), [written]
        ).calls
        assert called == "patch"
        assert re.fullmatch(r'(\+[a"\\é]{0,3}\n)+', given), written


@pytest.mark.parametrize("name", WITH_CALLS)
def test_the_trigger_begins_the_forced_text(name: str) -> None:
    calls = WITH_CALLS[name].calls
    assert calls is not None
    begin = calls.before or calls.call_format(TOOLS[0])["begin"]
    assert isinstance(begin, str) and begin.startswith(calls.trigger)
