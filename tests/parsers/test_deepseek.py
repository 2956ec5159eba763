"""The parser reads the output of DeepSeek R1, V3 and V3.1."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.deepseek import DEEPSEEK_V3, DEEPSEEK_V31, DeepSeekParser
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
BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"


def fenced(name: str, arguments: str) -> str:
    return (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n"
        "```<｜tool▁call▁end｜>"
    )


def bare(name: str, arguments: str) -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"


def section(*items: str) -> str:
    return BEGIN + "".join(items) + END


PARIS = '{"city": "Paris"}'
FENCED, BARE = fenced("get_weather", PARIS), bare("get_weather", PARIS)
PARIS_CALL = ("get_weather", PARIS)
NESTED = (
    '{"a": {"b": [[{"c": "}"}], {}]},\n "n": -3.25, "m": 1e400, "k": '
    "-170141183460469231731687303715884105729}"
)
MARKERS = (
    f'{{"q": "```<｜tool▁call▁end｜>{END}", "w": "\\\\", '
    '"v": "```json\\n{}", "u": "</think>\\""}'
)

GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "a code block": ('```json\n{"name": "ping"}\n```', Folded('```json\n{"name": "ping"}\n```')),
    "fenced": (section(FENCED), Folded(calls=[PARIS_CALL])),
    "bare": (section(BARE), Folded(calls=[PARIS_CALL])),
    "two fenced": (section(FENCED, "\n", FENCED), Folded(calls=[PARIS_CALL] * 2)),
    "two bare": (section(BARE, BARE), Folded(calls=[PARIS_CALL] * 2)),
    "three, mixed": (
        section(BARE, FENCED, bare("ping", "{}")),
        Folded(calls=[PARIS_CALL, PARIS_CALL, ("ping", "{}")]),
    ),
    "two sections": (section(FENCED) + "\n" + section(BARE), Folded(calls=[PARIS_CALL] * 2)),
    "no section": (f"{FENCED}\n{BARE}", Folded(calls=[PARIS_CALL] * 2)),
    "lines between the marks": (f"{BEGIN}\n{FENCED}\n{END}\n", Folded(calls=[PARIS_CALL])),
    "a fence without a type": (
        section(bare("f", '\n```json\n{"a": 1}\n```')),
        Folded(calls=[("f", '{"a": 1}')]),
    ),
    "a type without a fence": (
        section(
            f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n{PARIS}<｜tool▁call▁end｜>"
        ),
        Folded(calls=[PARIS_CALL]),
    ),
    "a tool called function": (
        section(bare("function", PARIS)),
        Folded(calls=[("function", PARIS)]),
    ),
    "text before": ("I look.\n" + section(FENCED), Folded("I look.\n", calls=[PARIS_CALL])),
    "text after": (section(BARE) + "\nDone.", Folded("\nDone.", calls=[PARIS_CALL])),
    "text around": (
        f"a {section(FENCED)} b {section(BARE)}c",
        Folded("a  b c", calls=[PARIS_CALL] * 2),
    ),
    "nested and huge, fenced": (section(fenced("f", NESTED)), Folded(calls=[("f", NESTED)])),
    "nested and huge, bare": (section(bare("f", NESTED)), Folded(calls=[("f", NESTED)])),
    "markers inside strings, fenced": (
        section(fenced("f", MARKERS), FENCED),
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "markers inside strings, bare": (
        section(bare("f", MARKERS), BARE),
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "unicode": (
        section(bare("f", '{"é😀": "\\u00e9 中｜▁"}')),
        Folded(calls=[("f", '{"é😀": "\\u00e9 中｜▁"}')]),
    ),
    "spacing of the model is kept": (
        section(fenced("f", '{ "a" :1 ,\n\n"b":[ ]}')),
        Folded(calls=[("f", '{ "a" :1 ,\n\n"b":[ ]}')]),
    ),
    "empty arguments": (section(fenced("ping", "{}")), Folded(calls=[("ping", "{}")])),
    "no arguments, fenced": (
        section(fenced("ping", ""), FENCED),
        Folded(calls=[("ping", "{}"), PARIS_CALL]),
    ),
    "no arguments, bare": (
        section(bare("ping", ""), BARE),
        Folded(calls=[("ping", "{}"), PARIS_CALL]),
    ),
    "unknown tool": (section(bare("nobody", "{}")), Folded(calls=[("nobody", "{}")])),
    "no end of the section": (BEGIN + FENCED, Folded(calls=[PARIS_CALL])),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "no end of the call": (
        section(BARE.removesuffix("<｜tool▁call▁end｜>")),
        Folded(calls=[PARIS_CALL]),
    ),
    "no end of the fence": (section(FENCED.replace("\n```<", "\n<")), Folded(calls=[PARIS_CALL])),
    "one brace too many": (section(bare("f", "{}}")), Folded(calls=[("f", "{}")])),
    "an empty section": (section(), Folded(section())),
    "no name": (section(bare("", PARIS)), Folded(section(bare("", PARIS)))),
    "no separator": (f"<｜tool▁call▁begin｜>f {PARIS}", Folded(f"<｜tool▁call▁begin｜>f {PARIS}")),
    "arguments that are no object": (section(bare("f", "[1]")), Folded(section(bare("f", "[1]")))),
    "a good one, then a broken one": (
        section(BARE, bare("f", "?")),
        Folded(bare("f", "?"), calls=[PARIS_CALL]),
    ),
    "cut in the arguments": (
        BEGIN + '<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut in the name": (
        f"{BEGIN}<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_wea",
        Folded(f"{BEGIN}<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_wea"),
    ),
    "cut after the type": (
        f"{BEGIN}<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        Folded(f"{BEGIN}<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
    ),
    "cut in the mark": ("Well <｜tool▁c", Folded("Well <｜tool▁c")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: DeepSeekParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: DeepSeekParser(TOOLS), text)


def thinking(prompt_text: str = "") -> Parser:
    return OutputFormat(DEEPSEEK_V31, DEEPSEEK_V31).make_parser(TOOLS, prompt_text)


THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "then text": ("<think>\nhm\n</think>\n\nHello.", Folded("Hello.", "hm")),
    "then a call": (f"<think>hm</think>{section(BARE)}", Folded("", "hm", [PARIS_CALL])),
    "a call inside stays reasoning": (f"<think>{BARE}</think>Hi", Folded("Hi", BARE)),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)
    check_truncation(thinking, text)


def test_the_prompt_decides_on_thinking() -> None:
    check_parser(
        lambda: thinking("<｜Assistant｜><think>"), "hm</think>Hello.", Folded("Hello.", "hm")
    )
    check_parser(lambda: thinking("<｜Assistant｜></think>"), "Hello.", Folded("Hello."))


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: DeepSeekParser(TOOLS), section(FENCED, BARE))


FRAGMENTS = [
    *(
        "<think>",
        "</think>",
        BEGIN,
        END,
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "```json",
        "```",
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
        "<｜tool▁",
        "function",
        FENCED,
        BARE,
        section(FENCED),
        '{"a": "',
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    text = section(BARE)
    assert parse(lambda: OutputFormat(calls=DEEPSEEK_V3).make_parser((), ""), [text]) == Folded(
        text
    )


def test_the_template_chooses_the_form() -> None:
    assert choose_output_format(f"'{BEGIN}' + '```json' + '</think>'") == OutputFormat(
        DEEPSEEK_V3, DEEPSEEK_V3
    )
    assert choose_output_format(f"'{BEGIN}' + name + '</think>'") == OutputFormat(
        DEEPSEEK_V31, DEEPSEEK_V31
    )
