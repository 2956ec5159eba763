"""The parser reads the output of Hermes, Qwen 2.5 and Qwen 3."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.hermes import HERMES, HermesParser
from ouzel.parsers.thinking import THINK_TAGS, ThinkingParser
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import (
    Folded,
    check_any_text,
    check_cut_marks,
    check_parser,
    check_truncation,
)

TOOLS = (FunctionTool("get_weather", parameters={"type": "object"}), FunctionTool("ping"))


def call(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


PARIS = '{"city": "Paris"}'
WEATHER = call('{"name": "get_weather", "arguments": {"city": "Paris"}}')
NESTED = '{"a": {"b": [1, {"c": "}"}]},  "d":-1e400, "e":9007199254740993}'
MARKERS = '{"text": "</tool_call><tool_call>{\\"name\\": \\"x\\"}", "q": "a\\\\\\"b"}'
DEEP = '{"a":' * 100 + "0" + "}" * 100

CASES: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "one call": (WEATHER, Folded(calls=[("get_weather", PARIS)])),
    "two calls": (WEATHER + "\n" + WEATHER, Folded(calls=[("get_weather", PARIS)] * 2)),
    "two calls without a line between": (
        WEATHER + WEATHER,
        Folded(calls=[("get_weather", PARIS)] * 2),
    ),
    "text before": (
        "Let me look.\n" + WEATHER,
        Folded("Let me look.\n", calls=[("get_weather", PARIS)]),
    ),
    "text after": (WEATHER + "\nDone.", Folded("\nDone.", calls=[("get_weather", PARIS)])),
    "text around": (
        f"a{WEATHER} b {WEATHER}c",
        Folded("a b c", calls=[("get_weather", PARIS)] * 2),
    ),
    "spacing of the model is kept": (
        call('{"name":"f","arguments":{ "a" :1 ,\n"b":[ ]}}'),
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
    "nested and huge": (
        call(f'{{"name": "f", "arguments": {NESTED}}}'),
        Folded(calls=[("f", NESTED)]),
    ),
    "markers inside strings": (
        call(f'{{"name": "f", "arguments": {MARKERS}}}'),
        Folded(calls=[("f", MARKERS)]),
    ),
    "unicode": (
        call('{"name": "f", "arguments": {"é😀": "\\u00e9 中"}}'),
        Folded(calls=[("f", '{"é😀": "\\u00e9 中"}')]),
    ),
    "no arguments key": (call('{"name": "ping"}'), Folded(calls=[("ping", "{}")])),
    "empty arguments": (call('{"name": "ping", "arguments": {}}'), Folded(calls=[("ping", "{}")])),
    "null arguments": (call('{"name": "ping", "arguments": null}'), Folded(calls=[("ping", "{}")])),
    "arguments in a string": (
        call('{"name": "f", "arguments": "{\\"a\\": 1}"}'),
        Folded(calls=[("f", '{"a": 1}')]),
    ),
    "arguments in a string, cut": (
        '<tool_call>\n{"name": "f", "arguments": "{\\"a\\": \\"x\\u00e9\\u00',
        Folded(calls=[("f", '{"a": "xé')]),
    ),
    "a name that is no text": (call('{"name": "\\ud800"}'), Folded(call('{"name": "\\ud800"}'))),
    "arguments before the name": (
        call(f'{{"arguments": {PARIS}, "name": "f"}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "parameters instead of arguments": (
        call(f'{{"name": "f", "parameters": {PARIS}}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "other keys": (
        call(f'{{"id": [1], "name": "f", "arguments": {PARIS}, "x": 2}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "unknown tool": (call('{"name": "nobody", "arguments": {}}'), Folded(calls=[("nobody", "{}")])),
    "a list in one block": (
        call('[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a": 1}}]'),
        Folded(calls=[("f", "{}"), ("g", '{"a": 1}')]),
    ),
    "no end mark": (WEATHER.removesuffix("\n</tool_call>"), Folded(calls=[("get_weather", PARIS)])),
    "cut in the arguments": (
        '<tool_call>\n{"name": "f", "arguments": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut after the name": ('<tool_call>\n{"name": "f", "argum', Folded(calls=[("f", "")])),
    "cut in the name": ('<tool_call>\n{"name": "ge', Folded('<tool_call>\n{"name": "ge')),
    "deep arguments": (
        call(f'{{"name": "f", "arguments": {DEEP}}}'),
        Folded(calls=[("f", DEEP)]),
    ),
    "deep arguments before the name": (
        call(f'{{"arguments": {DEEP}, "name": "f"}}'),
        Folded(call(f'{{"arguments": {DEEP}, "name": "f"}}')),
    ),
    "cut in another value": (
        '<tool_call>\n{"name": "f", "arguments": [1, 2',
        Folded('<tool_call>\n{"name": "f", "arguments": [1, 2'),
    ),
    "cut in the mark": ("Well <tool_c", Folded("Well <tool_c")),
    "not JSON": (call("get_weather(Paris)"), Folded(call("get_weather(Paris)"))),
    "broken before the arguments": (
        call('{"name": "f", oops}'),
        Folded(call('{"name": "f", oops}')),
    ),
    "no name": (call('{"arguments": {}}'), Folded(call('{"arguments": {}}'))),
    "arguments that are no object": (
        call('{"name": "f", "arguments": [1]}'),
        Folded(call('{"name": "f", "arguments": [1]}')),
    ),
    "a broken one, then a good one": (
        call("?") + WEATHER,
        Folded(call("?"), calls=[("get_weather", PARIS)]),
    ),
    "blanks around a broken one": (
        f" <tool_call> <tool_call>\n{WEATHER}",
        Folded(" <tool_call> <tool_call>\n", calls=[("get_weather", PARIS)]),
    ),
    "one missing brace": (
        '<tool_call>\n{"name": "f", "arguments": {}\n</tool_call>',
        Folded(calls=[("f", "{}")]),
    ),
    "one brace too many": (call('{"name": "f", "arguments": {}}}'), Folded(calls=[("f", "{}")])),
    "a lone end mark": ("a</tool_call>b", Folded("a</tool_call>b")),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: HermesParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, expected in CASES.values() if expected.calls])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: HermesParser(TOOLS), text)


def thinking(prompt_text: str = "") -> Parser:
    return ThinkingParser(THINK_TAGS, HermesParser(TOOLS), prompt_text)


THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "none": ("Hello.", Folded("Hello.")),
    "then text": ("<think>\nhm\n</think>\n\nHello.", Folded("Hello.", "hm")),
    "then a call": (
        "<think>\nhm\n\nso\n</think>\n\n" + WEATHER,
        Folded("", "hm\n\nso", [("get_weather", PARIS)]),
    ),
    "empty": ("<think>\n\n</think>\n\nHello.", Folded("Hello.")),
    "a call inside stays reasoning": (f"<think>{WEATHER}</think>Hi", Folded("Hi", WEATHER)),
    "cut off": ("<think>\nhm, ", Folded("", "hm, ")),
    "cut in the end mark": ("<think>\nhm</thin", Folded("", "hm</thin")),
    "not at the beginning": ("See <think>x</think>", Folded("See <think>x</think>")),
    "blank lines first": ("\n\n<think>x</think>y", Folded("y", "x")),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)


def test_a_prompt_that_opened_the_mark() -> None:
    opened = "<|im_start|>assistant\n<think>\n"
    check_parser(lambda: thinking(opened), "hm\n</think>\n\nHello.", Folded("Hello.", "hm"))
    check_parser(lambda: thinking(opened), "hm", Folded("", "hm"))


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: HermesParser(TOOLS), WEATHER + "\n" + WEATHER)


FRAGMENTS = [
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
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
        "<tool_",
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
    ),
    *('{"name": "f", "arguments": "{', "\\u00", "\\ud83d", "e9"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_the_family() -> None:
    assert HERMES.matches("... <tool_call> ... </tool_call> ...")
    assert not HERMES.matches("[TOOL_CALLS]")
