"""The parser reads the output of Phi-4-mini."""

import pytest

from ouzel.parsers.families.phi4 import PHI4, PHI4_MINI, Phi4Parser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import (
    Folded,
    check_any_text,
    check_cut_marks,
    check_parser,
    check_truncation,
    parse,
)

TOOLS = (FunctionTool("get_weather", parameters={"type": "object"}), FunctionTool("ping"))


def calls(*items: str) -> str:
    return f"functools[{', '.join(items)}]"


def marked(*items: str) -> str:
    return f"<|tool_call|>[{', '.join(items)}]<|/tool_call|>"


PARIS = '{"city": "Paris"}'
WEATHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS_CALL = ("get_weather", PARIS)
NESTED = '{"a": [{"b": [[1, -2.5e300], {"c": "]}"}]}],  "d": {}, "e": -12345678901234567890}'
MARKERS = '{"q": "functools[{\\"name\\": \\"x\\"}] <|/tool_call|>", "w": "C:\\\\new\\\\"}'

GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "one call": (calls(WEATHER), Folded(calls=[PARIS_CALL])),
    "two calls": (calls(WEATHER, WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "three calls over lines": (
        f"functools[\n  {WEATHER},\n  {WEATHER},\n  {WEATHER}\n]",
        Folded(calls=[PARIS_CALL] * 3),
    ),
    "calls without a blank between": (
        f"functools[{WEATHER},{WEATHER}]",
        Folded(calls=[PARIS_CALL] * 2),
    ),
    "two lists": (calls(WEATHER) + "\n" + calls(WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "text before": ("I look.\n" + calls(WEATHER), Folded("I look.\n", calls=[PARIS_CALL])),
    "text after": (calls(WEATHER) + "\nDone.", Folded("\nDone.", calls=[PARIS_CALL])),
    "text around and between": (
        f"a {calls(WEATHER)} b {calls(WEATHER)}c",
        Folded("a  b c", calls=[PARIS_CALL] * 2),
    ),
    "between tokens": (marked(WEATHER), Folded(calls=[PARIS_CALL])),
    "two between tokens": (marked(WEATHER, WEATHER) + "ok", Folded("ok", calls=[PARIS_CALL] * 2)),
    "an object between tokens": (
        f"<|tool_call|>{WEATHER}<|/tool_call|>",
        Folded(calls=[PARIS_CALL]),
    ),
    "two objects between tokens": (
        f"<|tool_call|>{WEATHER}<|/tool_call|><|tool_call|>{WEATHER}<|/tool_call|>",
        Folded(calls=[PARIS_CALL] * 2),
    ),
    "tokens after the word": (
        f"functools<|tool_call|>[{WEATHER}]",
        Folded("functools", calls=[PARIS_CALL]),
    ),
    "nested and huge": (
        calls(f'{{"name": "f", "arguments": {NESTED}}}'),
        Folded(calls=[("f", NESTED)]),
    ),
    "markers inside strings": (
        calls(f'{{"name": "f", "arguments": {MARKERS}}}', WEATHER),
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "unicode": (
        calls('{"name": "f", "arguments": {"é😀": "\\ud83d\\ude00 中"}}'),
        Folded(calls=[("f", '{"é😀": "\\ud83d\\ude00 中"}')]),
    ),
    "no arguments key": (calls('{"name": "ping"}'), Folded(calls=[("ping", "{}")])),
    "empty arguments": (calls('{"name": "ping", "arguments": {}}'), Folded(calls=[("ping", "{}")])),
    "null arguments": (
        calls('{"name": "ping", "arguments": null}'),
        Folded(calls=[("ping", "{}")]),
    ),
    "parameters instead of arguments": (
        calls(WEATHER.replace("arguments", "parameters")),
        Folded(calls=[PARIS_CALL]),
    ),
    "arguments before the name": (
        calls(f'{{"arguments": {PARIS}, "name": "f"}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "unknown tool": (
        calls('{"name": "nobody", "arguments": {"x": 0}}'),
        Folded(calls=[("nobody", '{"x": 0}')]),
    ),
    "spacing of the model is kept": (
        calls('{"name":"f","arguments":{ "a" :1 ,\n"b":[ ]}}'),
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
}

BAD: dict[str, tuple[str, Folded]] = {
    "the word in prose": (
        "from functools import cache\n\nfunctools.cache [1]",
        Folded("from functools import cache\n\nfunctools.cache [1]"),
    ),
    "an empty list": ("functools[]", Folded("functools[]")),
    "not JSON": ("functools[get_weather(Paris)]", Folded("functools[get_weather(Paris)]")),
    "no name": ('functools[{"arguments": {}}]', Folded('functools[{"arguments": {}}]')),
    "a good one, then a broken one": (
        calls(WEATHER, "oops") + ".",
        Folded("oops].", calls=[PARIS_CALL]),
    ),
    "no end of the list": (f"functools[{WEATHER}", Folded(calls=[PARIS_CALL])),
    "cut in the arguments": (
        'functools[{"name": "f", "arguments": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut in the name": ('functools[{"name": "ge', Folded('functools[{"name": "ge')),
    "cut in the word": ("Well funct", Folded("Well funct")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | BAD).values(), ids=GOOD | BAD)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: Phi4Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: Phi4Parser(TOOLS), text)


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: Phi4Parser(TOOLS), marked(WEATHER) + marked(WEATHER))


FRAGMENTS = [
    *(
        "functools",
        "functools[",
        "<|tool_call|>",
        "<|/tool_call|>",
        "\n",
        " ",
        "{",
        "}",
        "[",
        "]",
        '"',
        ",",
        ":",
        "\\",
    ),
    *(
        '{"name": "f", "arguments": ',
        '{"a": "',
        '"}',
        '"name"',
        '"arguments"',
        '{"name": "f"',
        "null",
        "1",
        WEATHER,
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(lambda: Phi4Parser(TOOLS), FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=PHI4).make_parser((), ""), [calls(WEATHER)]) == Folded(
        calls(WEATHER)
    )


def test_the_template_chooses_the_form() -> None:
    assert choose_output_format("prefix function calls with functools marker").calls is PHI4
    assert choose_output_format("'<|tool|>' + message['tools'] + '<|/tool|>'").calls is PHI4_MINI
