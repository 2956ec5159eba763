"""The parser reads the output of GLM 4.5 to 4.7."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.glm45 import GLM45, Glm45Parser
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {
    "text": {"type": "string"},
    "number": {"type": ["number", "null"]},
    "list": {"type": "array"},
    "object": {"type": "object"},
    "flag": {"allOf": [{"type": "boolean"}]},
}
TOOLS = (
    FunctionTool("f", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)


def argument(key: str, value: str) -> str:
    return f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"


def call(*arguments: str, name: str = "f") -> str:
    return f"<tool_call>{name}\n{''.join(arguments)}</tool_call>"


def given(arguments: str, *, content: str = "") -> Folded:
    return Folded(content, calls=[("f", arguments)])


PARIS = call(argument("text", "Paris"))
PARIS_CALL = ("f", '{"text": "Paris"}')
PING = call(name="ping")
PING_CALL = ("ping", "{}")
MARKERS = "<tool_call>f<arg_key>a</arg_key><arg_value>b</arg_value> <think></arg_value>"

VALUES = {  # key: (the model's text, JSON)
    "a string": ("text", 'say "hi" \\n', '"say \\"hi\\" \\\\n"'),
    "a string of digits": ("text", "0123", '"0123"'),
    "an empty string": ("text", "", '""'),
    "newlines are of the string": ("text", "\na\n\n", '"\\na\\n\\n"'),
    "unicode": ("text", "é😀 中", '"é😀 中"'),
    "markers in a string": ("text", MARKERS + ".", f'"{MARKERS}."'),
    "a negative number": ("number", "-1", "-1"),
    "a huge number": ("number", "1" + "0" * 4400, "1" + "0" * 4400),
    "an exact decimal": ("number", "0.1000000000000000000000001", "0.1000000000000000000000001"),
    "null": ("number", "null", "null"),
    "a boolean": ("flag", "True", "true"),
    "a list": ("list", '["a", {"b": "</arg_value>"}]', '["a", {"b": "</arg_value>"}]'),
    "an object": ("object", '{"a": {"b": {"c": []}}}', '{"a": {"b": {"c": []}}}'),
    "an object that is none": ("object", "a b", '"a b"'),
    "not listed, JSON": ("other", "[1, 2]", "[1, 2]"),
    "not listed, text": ("other", "no", '"no"'),
}

GOOD: dict[str, tuple[str, Folded]] = {
    **{
        name: (call(argument(key, value)), given(f'{{"{key}": {expected}}}'))
        for name, (key, value, expected) in VALUES.items()
    },
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": ("\n\n", Folded("\n\n")),
    "two arguments": (
        call(argument("list", "[]"), argument("text", "x")),
        given('{"list": [], "text": "x"}'),
    ),
    "no arguments": (PING, Folded(calls=[PING_CALL])),
    "no arguments, no newline": ("<tool_call>ping</tool_call>", Folded(calls=[PING_CALL])),
    "no newlines": (PARIS.replace("\n", ""), Folded(calls=[PARIS_CALL])),
    "more newlines": (
        PARIS.replace("\n", "\n\n").replace("<tool_call>", "<tool_call>\n"),
        Folded(calls=[PARIS_CALL]),
    ),
    "two calls": (f"{PARIS}\n{PING}", Folded(calls=[PARIS_CALL, PING_CALL])),
    "two calls, nothing between": (PARIS + PARIS, Folded(calls=[PARIS_CALL] * 2)),
    "text before": ("\nI look.\n" + PARIS, Folded("\nI look.\n", calls=[PARIS_CALL])),
    "text around": (f"a {PING} b {PING}c", Folded("a  b c", calls=[PING_CALL] * 2)),
    "unknown tool": (
        call(argument("a", "5"), name="no-body.x"),
        Folded(calls=[("no-body.x", '{"a": 5}')]),
    ),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "no end": (PARIS.removesuffix("</tool_call>"), Folded(calls=[PARIS_CALL])),
    "no end before the next": (
        PARIS.removesuffix("</tool_call>") + PING,
        Folded(calls=[PARIS_CALL, PING_CALL]),
    ),
    "text inside a call": (
        call(argument("number", "1"), "oh"),
        given('{"number": 1}', content="\noh</tool_call>"),
    ),
    "a key without a value": (
        call("<arg_key>a</arg_key>"),
        Folded("<arg_key>a</arg_key></tool_call>", calls=[("f", "{}")]),
    ),
    "JSON": (
        '<tool_call>\n{"name": "f"}\n</tool_call>',
        Folded('<tool_call>\n{"name": "f"}\n</tool_call>'),
    ),
    "prose": ("<tool_call>is a mark", Folded("<tool_call>is a mark")),
    "no name": ("<tool_call></tool_call>", Folded("<tool_call></tool_call>")),
    "cut in the name": ("<tool_call>pi", Folded("<tool_call>pi")),
    "cut in the mark": ("Well <tool_", Folded("Well <tool_")),
    "a lone end mark": ("a</tool_call>b", Folded("a</tool_call>b")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: Glm45Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values() if len(text) < 1000])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: Glm45Parser(TOOLS), text)


CUT_CASES = {
    "in a string": ("<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>Par", '{"text": "Par'),
    "in a value's end": (
        "<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>Par</ar",
        '{"text": "Par',
    ),
    "in a number": ("<tool_call>f\n<arg_key>number</arg_key>\n<arg_value>-4", '{"number": -4'),
    "in a key": ("<tool_call>f\n<arg_key>nu", ""),
    "between key and value": ("<tool_call>f\n<arg_key>number</arg_key>\n<arg_v", ""),
    "in the end": (
        "<tool_call>f\n<arg_key>flag</arg_key>\n<arg_value>True</arg_value>\n</too",
        '{"flag": true',
    ),
}


@pytest.mark.parametrize(("text", "arguments"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, arguments: str) -> None:
    check_parser(lambda: Glm45Parser(TOOLS), text, given(arguments), FinishReason.LENGTH)


def thinking() -> Parser:
    return OutputFormat(GLM45, GLM45).make_parser(TOOLS, "")


def test_reasoning_is_parsed() -> None:
    check_parser(
        thinking, f"\n<think>hm {PING}</think>\n{PARIS}", Folded("", f"hm {PING}", [PARIS_CALL])
    )


FRAGMENTS = [
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "\n",
        " ",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
    ),
    *(
        "</arg_value>",
        "<arg_",
        "f\n",
        "<tool_call>f\n",
        '"',
        "{",
        "5",
        "null",
        "<arg_key>text</arg_key><arg_value>",
    ),
    *("<arg_key>number</arg_key>\n<arg_value>", "<arg_key>any</arg_key>\n<arg_value>"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=GLM45).make_parser((), ""), [PARIS]) == Folded(PARIS)


def test_the_template_chooses() -> None:
    assert choose_output_format(
        "<tool_call><arg_key></arg_key><arg_value></tool_call><think>"
    ) == OutputFormat(GLM45, GLM45)
    assert choose_output_format("<tool_call></tool_call>").calls is HERMES
