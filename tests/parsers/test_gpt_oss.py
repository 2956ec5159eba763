"""The parser reads Harmony, the format of gpt-oss."""

import pytest

from ouzel.parsers.families.gpt_oss import GPT_OSS, HarmonyParser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

TOOLS = (FunctionTool("get_weather", parameters={"type": "object"}), FunctionTool("ping"))
PROMPT = "<|start|>user<|message|>Hi<|end|><|start|>assistant"
NEXT = "<|start|>assistant"

PARIS = '{"city": "Paris"}'
PARIS_CALL = ("get_weather", PARIS)
PING_CALL = ("ping", "{}")
ANALYSIS = "<|channel|>analysis<|message|>hm\nso<|end|>"
NESTED = '{"a": {"b": [1, {"c": "}"}]},  "d":-1e400, "e":9007199254740993}'
MARKERS = '{"q": "<|call|><|start|>assistant<|channel|>final<|message|>x", "w": "a\\\\\\"b"}'


def call(arguments: str, name: str = "get_weather", *, end: str = "<|call|>") -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}{end}"


def final(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


WEATHER = call(PARIS)

GOOD: dict[str, tuple[str, Folded]] = {
    "nothing": ("", Folded()),
    "an answer": (final("Hello."), Folded("Hello.")),
    "an answer without an end": ("<|channel|>final<|message|>Hello.\n", Folded("Hello.\n")),
    "reasoning": (ANALYSIS, Folded("", "hm\nso")),
    "reasoning, then an answer": (ANALYSIS + NEXT + final("Hello."), Folded("Hello.", "hm\nso")),
    "reasoning, then a call": (ANALYSIS + NEXT + WEATHER, Folded("", "hm\nso", [PARIS_CALL])),
    "reasoning twice": (
        ANALYSIS + NEXT + ANALYSIS + NEXT + WEATHER,
        Folded("", "hm\nso\n\nhm\nso", [PARIS_CALL]),
    ),
    "a preamble, then a call": (
        f"<|channel|>commentary<|message|>I look.<|end|>{NEXT}{WEATHER}",
        Folded("I look.", calls=[PARIS_CALL]),
    ),
    "a preamble, then an answer": (
        f"<|channel|>commentary<|message|>I look.<|end|>{NEXT}{final('Done.')}",
        Folded("I look.\n\nDone."),
    ),
    "one call": (WEATHER, Folded(calls=[PARIS_CALL])),
    "one call without an end": (call(PARIS, end=""), Folded(calls=[PARIS_CALL])),
    "two calls": (f"{WEATHER}{NEXT}{call('{}', 'ping')}", Folded(calls=[PARIS_CALL, PING_CALL])),
    "two calls, nothing between": (WEATHER + WEATHER, Folded(calls=[PARIS_CALL] * 2)),
    "a call, then an answer": (
        f"{WEATHER}{NEXT}{final('Done.')}",
        Folded("Done.", calls=[PARIS_CALL]),
    ),
    "the recipient before the channel": (
        (
            " to=functions.get_weather<|channel|>commentary "
            f"<|constrain|>json<|message|>{PARIS}<|call|>"
        ),
        Folded(calls=[PARIS_CALL]),
    ),
    "the recipient in a role header": (
        (
            f"{ANALYSIS}<|start|>assistant to=functions.get_weather<|channel|>commentary "
            f"json<|message|>{PARIS}<|call|>"
        ),
        Folded("", "hm\nso", [PARIS_CALL]),
    ),
    "a call in the analysis": (
        f"<|channel|>analysis to=functions.get_weather <|constrain|>json<|message|>{PARIS}<|call|>",
        Folded(calls=[PARIS_CALL]),
    ),
    "no constraint": (
        f"<|channel|>commentary to=functions.get_weather<|message|>{PARIS}<|call|>",
        Folded(calls=[PARIS_CALL]),
    ),
    "a tool's bare name": (
        f"<|channel|>commentary to=ping json<|message|>{PARIS}",
        Folded(calls=[("ping", PARIS)]),
    ),
    "nested and huge": (call(NESTED), Folded(calls=[("get_weather", NESTED)])),
    "markers inside strings": (call(MARKERS), Folded(calls=[("get_weather", MARKERS)])),
    "unicode": (
        call('{"é😀": "\\u00e9 中"}'),
        Folded(calls=[("get_weather", '{"é😀": "\\u00e9 中"}')]),
    ),
    "spacing of the model is kept": (
        call('{ "a" :1 ,\n"b":[ ]}'),
        Folded(calls=[("get_weather", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
    "no arguments": (call("", "ping"), Folded(calls=[PING_CALL])),
    "unknown tool": (call("{}", "nobody"), Folded(calls=[("nobody", "{}")])),
    "a built-in tool in the analysis": (
        f"<|channel|>analysis to=python code<|message|>print(1)<|end|>{NEXT}{final('1')}",
        Folded("1", "print(1)"),
    ),
    "another recipient": (
        "<|channel|>commentary to=browser.search json<|message|>{}<|call|>",
        Folded("{}"),
    ),
    "no end before the next": (
        f"<|channel|>analysis<|message|>hm<|start|>assistant{final('Hi')}",
        Folded("Hi", "hm"),
    ),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "no marks": ("Hello.", Folded("Hello.")),
    "whitespace alone": (" \n", Folded(" \n")),
    "an unknown channel": ("<|channel|>secret<|message|>x", Folded("<|channel|>secretx")),
    "a header that is none": ("<|channel|>final\nHello", Folded("<|channel|>final\nHello")),
    "a header without a message": ("<|channel|>final", Folded("<|channel|>final")),
    "arguments that are no object": (call("[1]"), Folded("[1]")),
    "something after the arguments": (call(PARIS, end=" oh"), Folded(" oh", calls=[PARIS_CALL])),
    "cut in the arguments": (call('{"a": "x', end=""), Folded(calls=[("get_weather", '{"a": "x')])),
    "text between messages": (f"{ANALYSIS}so{final('Hi')}", Folded("soHi", "hm\nso")),
}


def harmony() -> HarmonyParser:
    return HarmonyParser(TOOLS, PROMPT)


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_messages_are_parsed(text: str, expected: Folded) -> None:
    check_parser(harmony, text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(harmony, text)


CUT_CASES = {
    "in an answer": ("<|channel|>final<|message|>Hel", Folded("Hel")),
    "in reasoning": ("<|channel|>analysis<|message|>hm", Folded("", "hm")),
    "in a header": (ANALYSIS + "<|start|>assistant<|channel|>comm", Folded("", "hm\nso")),
    "before the arguments": (call("", end=""), Folded(calls=[("get_weather", "")])),
}


@pytest.mark.parametrize(("text", "expected"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, expected: Folded) -> None:
    check_parser(harmony, text, expected, FinishReason.LENGTH)


def test_an_answer_may_go_on_in_a_message_of_the_prompt() -> None:
    opened = PROMPT + "<|channel|>analysis<|message|>"
    check_parser(
        lambda: HarmonyParser(TOOLS, opened), f"hm<|end|>{NEXT}{final('Hi')}", Folded("Hi", "hm")
    )


def test_without_tools_nothing_is_a_call() -> None:
    without = parse(
        lambda: OutputFormat(GPT_OSS, GPT_OSS).make_parser((), PROMPT), [ANALYSIS + NEXT + WEATHER]
    )
    assert without == Folded(PARIS, "hm\nso")


FRAGMENTS = [
    *(
        "<|start|>",
        "assistant",
        "<|channel|>",
        "analysis",
        "final",
        "<|message|>",
        "<|end|>",
        "<|call|>",
        "\n",
        " ",
    ),
    *(
        "<|constrain|>",
        "json",
        "<|channel|>final<|message|>",
        "<|channel|>analysis<|message|>",
        "{",
        "}",
        '"',
        "[",
        "<|",
    ),
    "<|channel|>commentary to=functions.ping <|constrain|>json<|message|>",
]


def test_any_text(before_release: bool) -> None:
    check_any_text(harmony, FRAGMENTS, is_release=before_release)


def test_the_family() -> None:
    chosen = choose_output_format("<|start|>assistant<|channel|>final<|message|>")
    assert chosen == OutputFormat(GPT_OSS, GPT_OSS)
    assert "<|channel|>" in OutputFormat(calls=GPT_OSS).special_tokens(with_calls=False)
