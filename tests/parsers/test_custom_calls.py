"""The call of a custom tool holds text, in every family's form of calls."""

import json

import pytest

from ouzel.parsers.base import Parser, ToolCallDelta
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_parser, parse

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
TOOLS = (FunctionTool("run", parameters=SCHEMA, is_custom=True), FunctionTool("ping"))
TEXT = 'a "b"\n\t\\n {é😀}'


def make_parser() -> Parser:
    return OutputFormat(
        next(family for family in FAMILIES if "hermes" in family.names)
    ).make_parser(TOOLS, "")


def call(arguments: str, name: str = "run") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (json.dumps({"input": TEXT}), TEXT),
        (json.dumps({"input": TEXT}, ensure_ascii=False), TEXT),
        ('{ "input" :\n"a" }', "a"),
        ("{}", ""),
        ("null", ""),
        ('{"other": "a"}', '{"other": "a"}'),
        ('{"input": ["a"]}', '{"input": ["a"]}'),
        ('{"input": "a", "other": 1}', 'a", "other": 1}'),
        ('{"input": "a\\q"}', "a\\q"),
        ('{"input": "a\\ud83d"}', "a\\ud83d"),
        ('{"input": "a\\u12"}', "a\\u12"),
    ],
)
def test_a_text_is_decoded_and_malformed_text_is_shown_as_written(
    arguments: str, text: str
) -> None:
    check_parser(make_parser, call(arguments), Folded(calls=[("run", text)]))


def test_calls_of_both_kinds_follow_each_other() -> None:
    text = (
        call('{"other": 1}') + "\n" + call("{}", "ping") + "\n" + call('{"input": "b"}') + "ready"
    )
    check_parser(
        make_parser,
        text,
        Folded("ready", calls=[("run", '{"other": 1}'), ("ping", "{}"), ("run", "b")]),
    )


def test_every_piece_tells_that_the_call_is_a_custom_tools() -> None:
    parser = make_parser()
    deltas = [
        delta
        for char in call('{"input": "ab"}') + call("{}", "ping")
        for delta in parser.feed(char)
    ]
    calls = [
        delta
        for delta in [*deltas, *parser.finish(FinishReason.STOP)]
        if isinstance(delta, ToolCallDelta)
    ]
    assert [(delta.index, delta.is_custom) for delta in calls if delta.name or delta.arguments] == [
        *[(0, True)] * 3,
        *[(1, False)] * (len(calls) - 3),
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"inp', ""),
        ('{"input": "a\\', "a"),
        ('{"input": "a"', "a"),
        ('{"x', '{"x'),
        ('{"input": 1', '{"input": 1'),
    ],
)
def test_a_truncated_call_shows_its_beginning(arguments: str, text: str) -> None:
    written = call(arguments).partition(arguments)[0] + arguments
    assert parse(make_parser, [written], FinishReason.LENGTH) == Folded(calls=[("run", text)])
