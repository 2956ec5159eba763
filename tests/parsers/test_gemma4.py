"""The parser reads the output of Gemma 4 and FunctionGemma."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.gemma4 import FUNCTION_GEMMA, GEMMA4, Gemma4Parser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {"text": {"type": "string"}, "count": {"type": "integer"}}
TOOLS = (
    FunctionTool("f", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)
START, END, Q = "<|tool_call>", "<tool_call|>", '<|"|>'


def call(arguments: str, name: str = "f") -> str:
    return f"{START}call:{name}{{{arguments}}}{END}"


def given(arguments: str, *, content: str = "") -> Folded:
    return Folded(content, calls=[("f", arguments)])


PARIS = call(f"text:{Q}Paris{Q}")
PARIS_CALL = ("f", '{"text": "Paris"}')
PING = call("", "ping")
PING_CALL = ("ping", "{}")
MARKERS = "<tool_call|><|tool_call>call:x{a:1}, b:2}, <channel|>"

VALUES = {  # the model's text: JSON
    "a string": (f"{Q}Paris{Q}", '"Paris"'),
    "an empty string": (f"{Q}{Q}", '""'),
    "quotes in a string": (f'{Q}say "hi", it\'s{Q}', '"say \\"hi\\", it\'s"'),
    "backslashes are no escapes": (f"{Q}C:\\new\\table{Q}", '"C:\\\\new\\\\table"'),
    "lines": (f"{Q}a\n\tb{Q}", '"a\\n\\tb"'),
    "markers in a string": (f"{Q}{MARKERS}{Q}", f'"{MARKERS}"'),
    "unicode": (f"{Q}é😀 中{Q}", '"é😀 中"'),
    "a negative integer": ("-42", "-42"),
    "a huge integer": ("9" * 5000, "9" * 5000),
    "a huge decimal": ("1.10E+400", "1.10E+400"),
    "words": ("[true,false,null]", "[true, false, null]"),
    "a bare word": ("celsius", '"celsius"'),
    "a list of strings and numbers": (f"[{Q}a,]{Q},-1,[],{{}}]", '["a,]", -1, [], {}]'),
    "an object": (f"{{a:{Q}x{Q},b:{{c:[1,{{d:2}}]}}}}", '{"a": "x", "b": {"c": [1, {"d": 2}]}}'),
    "keys in marks": (f"{{{Q}a b{Q}:1}}", '{"a b": 1}'),
    "strings of JSON": ('{"a": "b\\n\\"c"}', '{"a": "b\\n\\"c"}'),
}

GOOD: dict[str, tuple[str, Folded]] = {
    **{
        name: (call(f"x:{value}"), given(f'{{"x": {expected}}}'))
        for name, (value, expected) in VALUES.items()
    },
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": ("\n", Folded("\n")),
    "two arguments": (call(f"text:{Q}a{Q},count:1"), given('{"text": "a", "count": 1}')),
    "blanks": (
        f"{START} call:f{{ count : 1 ,\n text:{Q}a{Q} }} {END}",
        given('{"count": 1, "text": "a"}'),
    ),
    "no arguments": (PING, Folded(calls=[PING_CALL])),
    "two calls": (PARIS + PING, Folded(calls=[PARIS_CALL, PING_CALL])),
    "two calls in one block": (
        f"{START}call:ping{{}}call:ping{{}}{END}",
        Folded(calls=[PING_CALL] * 2),
    ),
    "text around": (f"a {PING} b {PARIS}c", Folded("a  b c", calls=[PING_CALL, PARIS_CALL])),
    "a string by its schema": (call("text:5"), given('{"text": "5"}')),
    "a quoted key": (call(f"{Q}text{Q}:{Q}a{Q}"), given('{"text": "a"}')),
    "arguments as JSON": (call('"text": "a", "count": 1'), given('{"text": "a", "count": 1}')),
    "unknown tool": (call("a:1", "no-body.x"), Folded(calls=[("no-body.x", '{"a": 1}')])),
    "FunctionGemma": (
        "<start_function_call>call:f{text:<escape>a<escape>,count:2}<end_function_call>",
        given('{"text": "a", "count": 2}'),
    ),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "a bare time": (call("x:10:30"), given('{"x": "10:30"}')),
    "no end mark": (PARIS.removesuffix(END) + " so", given('{"text": "Paris"}', content=" so")),
    "no brace at the end": (call("count:1").replace("}", ""), given('{"count": 1}')),
    "no value": (call("a:,b:1"), given('{"a": , "b": 1}')),
    "something after a value": (call("a:[1]x"), given('{"a": [1]}', content=f"x}}{END}")),
    "a string without an end": (f"{START}call:f{{text:{Q}a", given('{"text": "a')),
    "no call": (f"{START}f{{}}{END}", Folded(f"{START}f{{}}{END}")),
    "no name": (f"{START}call:{{}}{END}", Folded(f"{START}call:{{}}{END}")),
    "no mark": ("call:f{}", Folded("call:f{}")),
    "cut in the name": (f"{START}call:pi", Folded(f"{START}call:pi")),
    "cut in the mark": ("Well <|tool_", Folded("Well <|tool_")),
    "a lone end mark": (f"a{END}b", Folded(f"a{END}b")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: Gemma4Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values() if len(text) < 1000])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: Gemma4Parser(TOOLS), text)


CUT_CASES = {
    "in a string": (f"{START}call:f{{text:{Q}Par", '{"text": "Par'),
    "in a string's end": (f"{START}call:f{{text:{Q}Par<|", '{"text": "Par'),
    "in a number": (f"{START}call:f{{count:12", '{"count": 12'),
    "in a key": (f"{START}call:f{{count:12,te", '{"count": 12'),
    "in a nested key": (f"{START}call:f{{x:{{a:1,b", '{"x": {"a": 1, '),
    "after the name": (f"{START}call:f{{", ""),
    "in the end mark": (call("count:12")[:-3], '{"count": 12}'),
}


@pytest.mark.parametrize(("text", "arguments"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, arguments: str) -> None:
    check_parser(lambda: Gemma4Parser(TOOLS), text, given(arguments), FinishReason.LENGTH)


def thinking() -> Parser:
    return OutputFormat(GEMMA4, GEMMA4).make_parser(TOOLS, "")


THINKING_CASES: dict[str, tuple[str, Folded]] = {
    "then text": ("<|channel>thought\nhm\nso\n<channel|>Hello.", Folded("Hello.", "hm\nso")),
    "then a call": (
        f"<|channel>thought\nhm {PING}<channel|>{PARIS}",
        Folded("", f"hm {PING}", [PARIS_CALL]),
    ),
    "empty": ("<|channel>thought\n<channel|>Hello.", Folded("Hello.")),
    "cut off": ("<|channel>thought\nhm <chan", Folded("", "hm <chan")),
}


@pytest.mark.parametrize(("text", "expected"), THINKING_CASES.values(), ids=THINKING_CASES)
def test_reasoning_is_parsed(text: str, expected: Folded) -> None:
    check_parser(thinking, text, expected, FinishReason.LENGTH)
    check_truncation(thinking, text)


FRAGMENTS = [
    *(
        START,
        END,
        Q,
        "<|channel>thought\n",
        "<channel|>",
        "\n",
        " ",
        "[",
        "]",
        "call:",
        "f",
        "{",
        "}",
        "a:",
        "text:",
    ),
    *(
        ",",
        ":",
        '"',
        "'",
        "\\",
        "5",
        "null",
        "<|",
        "<escape>",
        f"{START}call:f{{",
        f"{START}call:f{{text:{Q}",
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=GEMMA4).make_parser((), ""), [PARIS]) == Folded(PARIS)


def test_the_template_chooses() -> None:
    assert choose_output_format("'<|tool_call>call:' + name + '<|channel>thought'") == OutputFormat(
        GEMMA4, GEMMA4
    )
    assert choose_output_format("<start_function_call>").calls is FUNCTION_GEMMA
