"""The parser reads the output of Granite 3."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.granite import GRANITE, GRANITE_33, GraniteParser
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
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
    return f"<|tool_call|>[{', '.join(items)}]"


PARIS = '{"city": "Paris"}'
WEATHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS_CALL = ("get_weather", PARIS)
NESTED = '{"a": {"b": {"c": ["}]", [], {}]}}, "n": -0.0, "big": 1e999, "t": [true, false, null]}'
MARKERS = (
    '{"q": "<|tool_call|>[{\\"name\\": \\"x\\"}]<tool_call>", "w": "Here is my response: \\\\"}'
)

GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": ("\n ", Folded("\n ")),
    "one call": (calls(WEATHER), Folded(calls=[PARIS_CALL])),
    "one call after a blank": (f"<|tool_call|> [{WEATHER}]", Folded(calls=[PARIS_CALL])),
    "two calls": (calls(WEATHER, WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "two lists": (calls(WEATHER) + calls(WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "a call without a list": (f"<|tool_call|>{WEATHER}", Folded(calls=[PARIS_CALL])),
    "calls without a list": (
        f"<|tool_call|>{WEATHER}\n<|tool_call|>{WEATHER}",
        Folded(calls=[PARIS_CALL] * 2),
    ),
    "the mark of 3.1": (f"<tool_call>[{WEATHER}]", Folded(calls=[PARIS_CALL])),
    "the mark of 3.1, closed": (
        f"<tool_call>[{WEATHER}]</tool_call>.",
        Folded(".", calls=[PARIS_CALL]),
    ),
    "over lines": (f"<|tool_call|>[\n{WEATHER},\n{WEATHER}\n]\n", Folded(calls=[PARIS_CALL] * 2)),
    "text before": ("I look.\n" + calls(WEATHER), Folded("I look.\n", calls=[PARIS_CALL])),
    "text after": (calls(WEATHER) + "\nDone.", Folded("\nDone.", calls=[PARIS_CALL])),
    "text around": (
        f"a {calls(WEATHER)} b {calls(WEATHER)}c",
        Folded("a  b c", calls=[PARIS_CALL] * 2),
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
        calls('{"name": "f", "arguments": {"ключ": "\\u00e9 中🙂"}}'),
        Folded(calls=[("f", '{"ключ": "\\u00e9 中🙂"}')]),
    ),
    "no arguments key": (calls('{"name": "ping"}'), Folded(calls=[("ping", "{}")])),
    "empty arguments": (calls('{"name": "ping", "arguments": {}}'), Folded(calls=[("ping", "{}")])),
    "null arguments": (
        calls('{"name": "ping", "arguments": null}'),
        Folded(calls=[("ping", "{}")]),
    ),
    "other keys": (
        calls(f'{{"name": "f", "arguments": {PARIS}, "label": "$var_1"}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "arguments before the name": (
        calls(f'{{"arguments": {PARIS}, "name": "f"}}'),
        Folded(calls=[("f", PARIS)]),
    ),
    "unknown tool": (
        calls('{"name": "nobody", "arguments": {}}'),
        Folded(calls=[("nobody", "{}")]),
    ),
    "spacing of the model is kept": (
        calls('{"name":"f","arguments":{ "a" :1 ,\n"b":[ ]}}'),
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
}

BAD: dict[str, tuple[str, Folded]] = {
    "an empty list": ("<|tool_call|>[]", Folded("<|tool_call|>[]")),
    "not JSON": ("<|tool_call|>ping()", Folded("<|tool_call|>ping()")),
    "no name": ('<|tool_call|>[{"arguments": {}}]', Folded('<|tool_call|>[{"arguments": {}}]')),
    "a good one, then a broken one": (
        calls(WEATHER, "oops") + ".",
        Folded("oops].", calls=[PARIS_CALL]),
    ),
    "no end of the list": (f"<|tool_call|>[{WEATHER}", Folded(calls=[PARIS_CALL])),
    "cut in the arguments": (
        '<|tool_call|>[{"name": "f", "arguments": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut in the name": ('<|tool_call|>[{"name": "ge', Folded('<|tool_call|>[{"name": "ge')),
    "a list without a mark": (f"[{WEATHER}]", Folded(f"[{WEATHER}]")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | BAD).values(), ids=GOOD | BAD)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: GraniteParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: GraniteParser(TOOLS), text)


def thinking() -> Parser:
    return OutputFormat(GRANITE, GRANITE).make_parser(TOOLS, "")


THOUGHT, RESPONSE = "Here is my thought process:", "Here is my response:"

THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "none": ("Hello. Here is my response: 4", Folded("Hello. Here is my response: 4")),
    "then text": (f"{THOUGHT}\n\nhm\nso\n\n{RESPONSE}\n\nFour.", Folded("Four.", "hm\nso")),
    "shortened": (
        "Here's my thought process:\nhm\nHere's my response:\nFour.",
        Folded("Four.", "hm"),
    ),
    "mixed": (f"{THOUGHT}\nhm\nHere's my response:\nFour.", Folded("Four.", "hm")),
    "then a call": (f"{THOUGHT}\nhm\n{RESPONSE}\n{calls(WEATHER)}", Folded("", "hm", [PARIS_CALL])),
    "a call inside stays reasoning": (
        f"{THOUGHT}{calls(WEATHER)}{RESPONSE}x",
        Folded("x", calls(WEATHER)),
    ),
    "cut off": (f"{THOUGHT}\nhm, Here is", Folded("", "hm, Here is")),
    "cut in the first mark": ("Here is my tho", Folded("Here is my tho")),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)
    check_truncation(thinking, text)


def thinking_33(prompt_text: str = "") -> Parser:
    return OutputFormat(GRANITE, GRANITE_33).make_parser(TOOLS, prompt_text)


CASES_33: dict[str, tuple[str, Folded]] = {
    "an answer": ("<think>hm</think><response>Four.</response>", Folded("Four.", "hm")),
    "lines between the marks": (
        "<think>\nhm\n</think>\n\n<response>Four.</response>\n",
        Folded("Four.\n", "hm"),
    ),
    "no marks around the answer": (
        "<think>hm</think>Four. <response>",
        Folded("Four. <response>", "hm"),
    ),
    "a call after the answer": (
        f"<think>hm</think><response>I look.</response>{calls(WEATHER)}",
        Folded("I look.", "hm", [PARIS_CALL]),
    ),
    "a call in the answer": (
        f"<think>hm</think><response>{calls(WEATHER)}</response>",
        Folded("", "hm", [PARIS_CALL]),
    ),
    "no reasoning": ("<response>Four.</response>", Folded("<response>Four.</response>")),
    "cut off": ("<think>hm</think><response>Four.</resp", Folded("Four.</resp", "hm")),
}


@pytest.mark.parametrize(("text", "expected"), CASES_33.values(), ids=CASES_33)
def test_thinking_in_tags(text: str, expected: Folded) -> None:
    check_parser(thinking_33, text, expected, FinishReason.LENGTH)
    check_truncation(thinking_33, text)


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(
        lambda: GraniteParser(TOOLS), f"<tool_call>[{WEATHER}]</tool_call><|tool_call|>{WEATHER}"
    )


FRAGMENTS = [
    *(THOUGHT, RESPONSE, "Here's my response:", "Here"),
    *(
        "<|tool_call|>",
        "<tool_call>",
        "</tool_call>",
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
    check_any_text(thinking, FRAGMENTS, is_release=before_release)
    check_any_text(
        thinking_33,
        [*FRAGMENTS, "<think>", "</think>", "<response>", "</response>"],
        is_release=before_release,
    )


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(
        lambda: OutputFormat(calls=GRANITE).make_parser((), ""), [calls(WEATHER)]
    ) == Folded(calls(WEATHER))


def test_the_template_chooses() -> None:
    roles = "<|start_of_role|>system<|end_of_role|>"
    assert (
        choose_output_format(roles + "respond with <|tool_call|> followed by a JSON list").calls
        is GRANITE
    )
    assert choose_output_format(f"{roles} <tool_call>{{}}</tool_call>").calls is HERMES
    assert (
        choose_output_format(f"{roles} Write your thoughts after '{THOUGHT}'").reasoning is GRANITE
    )
    newer = (
        f"{roles} Write your thoughts between <think></think> and write your response between "
        "<response></response>"
    )
    assert choose_output_format(newer) == OutputFormat(GRANITE, GRANITE_33)
