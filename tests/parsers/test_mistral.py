"""The parser reads the output of Mistral, Devstral and Magistral."""

import pytest

from ouzel.parsers.base import Parser, ToolCallDelta
from ouzel.parsers.families.mistral import DEVSTRAL, MISTRAL, MistralParser
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat, choose_output_format
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

PARIS = '{"city": "Paris"}'
WEATHER = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS_CALL = ("get_weather", PARIS)
NAMED = f"[TOOL_CALLS]get_weather[ARGS]{PARIS}"
NESTED = '{"a": [[[{"b": "]}"}]]], "c": {"d": {}}, "e": -0.5e-9, "f": 99999999999999999999}'
MARKERS = '{"q": "[TOOL_CALLS][{\\"name\\": \\"x\\"}][ARGS]", "w": "\\\\", "t": "[/THINK]"}'


def calls(*items: str) -> str:
    return f"[TOOL_CALLS][{', '.join(items)}]"


GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "one in a list": (calls(WEATHER), Folded(calls=[PARIS_CALL])),
    "two in a list": (calls(WEATHER, WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "a blank after the mark": (f"[TOOL_CALLS] [{WEATHER}]", Folded(calls=[PARIS_CALL])),
    "an object after the mark": (f"[TOOL_CALLS]{WEATHER}", Folded(calls=[PARIS_CALL])),
    "two lists": (calls(WEATHER) + "\n" + calls(WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "over lines": (
        f"[TOOL_CALLS][\n  {WEATHER},\n  {WEATHER}\n]\n",
        Folded(calls=[PARIS_CALL] * 2),
    ),
    "a list without its mark": (f"[{WEATHER}, {WEATHER}]", Folded(calls=[PARIS_CALL] * 2)),
    "text around a list": (f"a {calls(WEATHER)} b", Folded("a  b", calls=[PARIS_CALL])),
    "named": (NAMED, Folded(calls=[PARIS_CALL])),
    "two named": (NAMED + NAMED, Folded(calls=[PARIS_CALL] * 2)),
    "two named with a line between": (f"{NAMED}\n{NAMED}\n", Folded(calls=[PARIS_CALL] * 2)),
    "text around named": (f"a\n{NAMED}b {NAMED} c", Folded("a\nb  c", calls=[PARIS_CALL] * 2)),
    "named with an id": (
        f"[TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{PARIS}",
        Folded(calls=[PARIS_CALL]),
    ),
    "named without the second mark": (
        f"[TOOL_CALLS]get_weather{PARIS}",
        Folded(calls=[PARIS_CALL]),
    ),
    "both forms": (NAMED + calls(WEATHER), Folded(calls=[PARIS_CALL] * 2)),
    "named with dashes and dots": (
        f"[TOOL_CALLS]a-b.c_d[ARGS]{PARIS}",
        Folded(calls=[("a-b.c_d", PARIS)]),
    ),
    "nested and huge, listed": (
        calls(f'{{"name": "f", "arguments": {NESTED}}}'),
        Folded(calls=[("f", NESTED)]),
    ),
    "nested and huge, named": (f"[TOOL_CALLS]f[ARGS]{NESTED}", Folded(calls=[("f", NESTED)])),
    "markers inside strings, listed": (
        calls(f'{{"name": "f", "arguments": {MARKERS}}}', WEATHER),
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "markers inside strings, named": (
        f"[TOOL_CALLS]f[ARGS]{MARKERS}{NAMED}",
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "unicode": (
        '[TOOL_CALLS]f[ARGS]{"é😀": "\\u00e9 中"}',
        Folded(calls=[("f", '{"é😀": "\\u00e9 中"}')]),
    ),
    "spacing of the model is kept": (
        '[TOOL_CALLS]f[ARGS] { "a" :1 ,\n"b":[ ]}',
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
    "no arguments, listed": (calls('{"name": "ping"}'), Folded(calls=[("ping", "{}")])),
    "empty arguments, named": ("[TOOL_CALLS]ping[ARGS]{}", Folded(calls=[("ping", "{}")])),
    "no arguments, named": ("[TOOL_CALLS]ping[ARGS]", Folded(calls=[("ping", "{}")])),
    "no arguments, named, then another": (
        f"[TOOL_CALLS]ping[ARGS]{NAMED}",
        Folded(calls=[("ping", "{}"), PARIS_CALL]),
    ),
    "unknown tool": ("[TOOL_CALLS]nobody[ARGS]{}", Folded(calls=[("nobody", "{}")])),
}

ANSWERS = {
    "a list of numbers": "[1, 2, 3]",
    "a list of objects": '[{"name": "Ann", "arguments": {}}, {"name": "Bo"}]',
    "a list of tools": (
        '[{"name": "ping", "description": "Pings.", "parameters": {"type": "object"}}]'
    ),
    "a list later in the text": f"Like [{WEATHER}]",
    "a Markdown link": "[Paris](https://example.com) [ARGS]",
    "arguments that are no object": "[TOOL_CALLS]ping[ARGS][1, 2]",
    "no second mark": "[TOOL_CALLS]ping and more",
    "no name": "[TOOL_CALLS][ARGS]{}",
    "the marks in another order": "[ARGS]ping[TOOL_CALLS]{}",
    "cut in the name": "[TOOL_CALLS]get_wea",
    "cut in the second mark": "[TOOL_CALLS]get_weather[AR",
    "cut in the mark": "Well [TOOL_",
}

OTHERS: dict[str, tuple[str, Folded]] = {
    **{f"answer: {name}": (text, Folded(text)) for name, text in ANSWERS.items()},
    "cut in the arguments, listed": (
        '[TOOL_CALLS][{"name": "f", "arguments": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut in the arguments, named": (
        '[TOOL_CALLS]f[ARGS]{"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "a broken one, then a good one": (
        f"[TOOL_CALLS]?{NAMED}",
        Folded("[TOOL_CALLS]?", calls=[PARIS_CALL]),
    ),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: MistralParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: MistralParser(TOOLS), text)


def test_ids_are_the_models_own_or_nine_characters_long() -> None:
    deltas = MistralParser(TOOLS).feed(NAMED + "[TOOL_CALLS]ping[CALL_ID]a1b2c3d4e[ARGS]{}")
    first, second = [delta.id for delta in deltas if isinstance(delta, ToolCallDelta) and delta.id]
    assert len(first) == 9 and first.isalnum()
    assert second == "a1b2c3d4e"


def test_a_call_cut_before_its_arguments_has_none_yet() -> None:
    text = "[TOOL_CALLS]ping[ARGS]"
    assert parse(lambda: MistralParser(TOOLS), [text], FinishReason.LENGTH) == Folded(
        calls=[("ping", "")]
    )


def thinking() -> Parser:
    return OutputFormat(DEVSTRAL, DEVSTRAL).make_parser(TOOLS, "")


THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "then text": ("[THINK]hm\nso[/THINK]Hello.", Folded("Hello.", "hm\nso")),
    "then a call": (f"[THINK]hm[/THINK]{NAMED}", Folded("", "hm", [PARIS_CALL])),
    "a call inside stays reasoning": (f"[THINK]{NAMED}[/THINK]Hi", Folded("Hi", NAMED)),
    "cut off": ("[THINK]hm [/TH", Folded("", "hm [/TH")),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)
    check_truncation(thinking, text)


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: MistralParser(TOOLS), NAMED + NAMED)


FRAGMENTS = [
    *(
        "[THINK]",
        "[/THINK]",
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
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
        "[TOOL_CALLS]f[ARGS]",
        "null",
        WEATHER,
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=MISTRAL).make_parser((), ""), [NAMED]) == Folded(NAMED)


def test_the_template_chooses_the_form() -> None:
    assert choose_output_format("'[TOOL_CALLS]' + name + '[ARGS]' + '[THINK]'") == OutputFormat(
        DEVSTRAL, DEVSTRAL
    )
    assert choose_output_format("'[TOOL_CALLS] [' + call + '[THINK]'") == OutputFormat(
        MISTRAL, MISTRAL
    )
    assert choose_output_format("[AVAILABLE_TOOLS]...[/AVAILABLE_TOOLS]").calls is MISTRAL
    assert choose_output_format("[TOOL_CALLS] <think>").reasoning is THINKING_ONLY
