"""The parser reads the output of Kimi K2."""

import pytest

from ouzel.parsers.base import Parser, ToolCallDelta
from ouzel.parsers.families.kimi_k2 import KIMI, KIMI_K2, KimiK2Parser
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
BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def call(call_id: str, arguments: str) -> str:
    return f"<|tool_call_begin|>{call_id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def section(*items: str) -> str:
    return BEGIN + "".join(items) + END


PARIS = '{"city": "Paris"}'
WEATHER = call("functions.get_weather:0", PARIS)
OTHER = call("functions.get_weather:1", PARIS)
PARIS_CALL = ("get_weather", PARIS)
NESTED = '{"a": {"b": [{}, [[]], {"c": "}]"}]}, "n": -1, "m": -1e-400, "k": 18446744073709551616}'
MARKERS = (
    f'{{"q": "<|tool_call_end|>{END}", "w": "\\\\", "v": "{BEGIN}<|tool_call_begin|>a:0", "u": '
    f'"\\"}}"}}'
)

GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "one call": (section(WEATHER), Folded(calls=[PARIS_CALL])),
    "two calls": (section(WEATHER, OTHER), Folded(calls=[PARIS_CALL] * 2)),
    "three calls over lines": (
        f"{BEGIN}\n{WEATHER}\n{OTHER}\n{call('functions.ping:2', '{}')}\n{END}\n",
        Folded(calls=[PARIS_CALL, PARIS_CALL, ("ping", "{}")]),
    ),
    "two sections": (section(WEATHER) + "\n" + section(OTHER), Folded(calls=[PARIS_CALL] * 2)),
    "the other mark": (f"<|tool_call_section_begin|>{WEATHER}{END}", Folded(calls=[PARIS_CALL])),
    "no section": (f"{WEATHER}\n{OTHER}", Folded(calls=[PARIS_CALL] * 2)),
    "text before": ("I look.\n" + section(WEATHER), Folded("I look.\n", calls=[PARIS_CALL])),
    "text after": (section(WEATHER) + "\nDone.", Folded("\nDone.", calls=[PARIS_CALL])),
    "text around": (
        f"a {section(WEATHER)} b {section(OTHER)}c",
        Folded("a  b c", calls=[PARIS_CALL] * 2),
    ),
    "text between calls": (section(WEATHER, "and ", OTHER), Folded("and ", calls=[PARIS_CALL] * 2)),
    "nested and huge": (section(call("functions.f:0", NESTED)), Folded(calls=[("f", NESTED)])),
    "markers inside strings": (
        section(call("functions.f:0", MARKERS), OTHER),
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "unicode": (
        section(call("functions.f:0", '{"é😀": "\\u00e9 中"}')),
        Folded(calls=[("f", '{"é😀": "\\u00e9 中"}')]),
    ),
    "spacing of the model is kept": (
        section(call(" functions.f:0 ", ' { "a" :1 ,\n"b":[ ]} ')),
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
    "empty arguments": (section(call("functions.ping:0", "{}")), Folded(calls=[("ping", "{}")])),
    "no arguments": (
        section(call("functions.ping:0", ""), OTHER),
        Folded(calls=[("ping", "{}"), PARIS_CALL]),
    ),
    "no prefix": (section(call("get_weather:0", PARIS)), Folded(calls=[PARIS_CALL])),
    "no number": (section(call("functions.get_weather", PARIS)), Folded(calls=[PARIS_CALL])),
    "a large number": (
        section(call("functions.get_weather:12", PARIS)),
        Folded(calls=[PARIS_CALL]),
    ),
    "dots and colons in the name": (
        section(call("functions.a.b:c-d:3", "{}")),
        Folded(calls=[("a.b:c-d", "{}")]),
    ),
    "unknown tool": (section(call("functions.nobody:0", "{}")), Folded(calls=[("nobody", "{}")])),
    "no end of the section": (BEGIN + WEATHER, Folded(calls=[PARIS_CALL])),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "no end of the call": (
        section(WEATHER.removesuffix("<|tool_call_end|>")),
        Folded(calls=[PARIS_CALL]),
    ),
    "one brace too many": (section(call("functions.f:0", "{}}")), Folded(calls=[("f", "{}")])),
    "an empty section": (section(), Folded(section())),
    "no name": (section(call("", PARIS)), Folded(section(call("", PARIS)))),
    "no arguments mark": (
        f"{BEGIN}<|tool_call_begin|>functions.f:0 {PARIS}",
        Folded(f"{BEGIN}<|tool_call_begin|>functions.f:0 {PARIS}"),
    ),
    "arguments that are no object": (
        section(call("functions.f:0", "[1]")),
        Folded(section(call("functions.f:0", "[1]"))),
    ),
    "a good one, then a broken one": (
        section(WEATHER, call("?", "x")),
        Folded(call("?", "x"), calls=[PARIS_CALL]),
    ),
    "a lone end": (f"a{END}b", Folded(f"a{END}b")),
    "cut in the arguments": (
        f'{BEGIN}<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{{"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut in the id": (
        f"{BEGIN}<|tool_call_begin|>functions.ge",
        Folded(f"{BEGIN}<|tool_call_begin|>functions.ge"),
    ),
    "cut in the mark": ("Well <|tool_c", Folded("Well <|tool_c")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: KimiK2Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: KimiK2Parser(TOOLS), text)


def test_ids_are_the_models_own_when_they_are_unique() -> None:
    deltas = KimiK2Parser(TOOLS).feed(section(WEATHER, OTHER, OTHER, call("ping", "{}")))
    first, second, third, fourth = [
        delta.id for delta in deltas if isinstance(delta, ToolCallDelta) and delta.id
    ]
    assert (first, second) == ("functions.get_weather:0", "functions.get_weather:1")
    assert third.startswith("call_") and fourth.startswith("call_")


def thinking(prompt_text: str = "") -> Parser:
    return OutputFormat(KIMI_K2, KIMI_K2).make_parser(TOOLS, prompt_text)


THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "then text": ("<think>hm</think>Hello.", Folded("Hello.", "hm")),
    "then a call": (f"<think>hm</think>{section(WEATHER)}", Folded("", "hm", [PARIS_CALL])),
    "a call without an end of it": (
        f"<think>hm\n{section(WEATHER)}ok",
        Folded("ok", "hm", [PARIS_CALL]),
    ),
    "cut off": ("<think>hm <|tool_calls_sec", Folded("", "hm <|tool_calls_sec")),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)
    check_truncation(thinking, text)


def test_the_reasoning_of_other_models() -> None:
    text, expected = "◁think▷\nhm </think>\n◁/think▷\nHello.", Folded("Hello.", "hm </think>")
    check_parser(lambda: OutputFormat(reasoning=KIMI).make_parser((), ""), text, expected)


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: KimiK2Parser(TOOLS), section(WEATHER, OTHER))


FRAGMENTS = [
    *(
        "<think>",
        "</think>",
        BEGIN,
        END,
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
    ),
    *(
        "\n",
        " ",
        "{",
        "}",
        '"',
        ",",
        ":",
        "\\",
        "<|tool_c",
        "functions.f:0",
        WEATHER,
        section(WEATHER),
        '{"a": "',
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    text = section(WEATHER)
    assert parse(lambda: OutputFormat(KIMI_K2, KIMI_K2).make_parser((), ""), [text]) == Folded(text)


def test_the_template_chooses() -> None:
    assert choose_output_format(BEGIN + "<think></think>") == OutputFormat(KIMI_K2, KIMI_K2)
    assert choose_output_format("'◁think▷'").reasoning is KIMI
