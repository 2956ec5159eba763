"""The parser reads the output of MiniCPM5."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.minicpm5 import MINICPM5, MiniCpm5Parser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "list": {"type": "array"},
    "object": {"type": "object"},
    "flag": {"oneOf": [{"type": "boolean"}, {"type": "null"}]},
    "mode": {"const": "12"},
}
TOOLS = (
    FunctionTool("f", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)


def param(key: str, value: str) -> str:
    return f'<param name="{key}">{value}</param>'


def call(*params: str, name: str = "f") -> str:
    return f'<function name="{name}">{"".join(params)}</function>'


def given(arguments: str, *, content: str = "") -> Folded:
    return Folded(content, calls=[("f", arguments)])


PARIS = call(param("text", "Paris"))
PARIS_CALL = ("f", '{"text": "Paris"}')
PING = call(name="ping")
PING_CALL = ("ping", "{}")
MARKERS = "<function name='g'><param name='a'>b</param> </function"

VALUES = {  # key: (the model's text, JSON)
    "a string": ("text", 'say "hi" \\n', '"say \\"hi\\" \\\\n"'),
    "a string of digits": ("text", "-1", '"-1"'),
    "an empty string": ("text", "", '""'),
    "blanks are of the string": ("text", "\n a\t", '"\\n a\\t"'),
    "unicode": ("text", "é😀 中", '"é😀 中"'),
    "entities stay": ("text", "a &lt; b", '"a &lt; b"'),
    "markers in a string": ("text", MARKERS, f'"{MARKERS}"'),
    "character data": (
        "text",
        "<![CDATA[a < b && ]] </param></function>]]>",
        '"a < b && ]] </param></function>"',
    ),
    "character data that is JSON": ("object", '<![CDATA[{"a": "<b>"}]]>', '{"a": "<b>"}'),
    "an integer": ("count", "-42", "-42"),
    "a huge integer": ("count", "8" * 5000, "8" * 5000),
    "a boolean": ("flag", "FALSE", "false"),
    "null": ("flag", " null ", "null"),
    "a list": ("list", '[-1.5e-3, "]"]', '[-1.5e-3, "]"]'),
    "an object": ("object", '{"a": {"b": [1, {}]}}', '{"a": {"b": [1, {}]}}'),
    "a constant": ("mode", "12", '"12"'),
    "not listed, JSON": ("other", "true", "true"),
    "not listed, text": ("other", "to be", '"to be"'),
}

GOOD: dict[str, tuple[str, Folded]] = {
    **{
        name: (call(param(key, value)), given(f'{{"{key}": {expected}}}'))
        for name, (key, value, expected) in VALUES.items()
    },
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" ", Folded(" ")),
    "two parameters": (
        call(param("count", "1"), param("text", "x")),
        given('{"count": 1, "text": "x"}'),
    ),
    "over lines": (
        f'<function name="f">\n  {param("count", "1")}\n  {param("text", "x")}\n</function>\n',
        given('{"count": 1, "text": "x"}'),
    ),
    "no parameters": (PING, Folded(calls=[PING_CALL])),
    "two calls": (f"{PARIS}\n{PING}", Folded(calls=[PARIS_CALL, PING_CALL])),
    "two calls, nothing between": (PARIS + PARIS, Folded(calls=[PARIS_CALL] * 2)),
    "text around": (f"a {PING} b {PARIS}c", Folded("a  b c", calls=[PING_CALL, PARIS_CALL])),
    "unknown tool": (call(param("a", "5"), name="nobody"), Folded(calls=[("nobody", '{"a": 5}')])),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    "no end": (PARIS.removesuffix("</function>"), Folded(calls=[PARIS_CALL])),
    "no end before the next": (
        PARIS.removesuffix("</function>") + PING,
        Folded(calls=[PARIS_CALL, PING_CALL]),
    ),
    "text inside a call": (
        call(param("count", "1"), "oh"),
        given('{"count": 1}', content="oh</function>"),
    ),
    "a parameter without a name": (
        call("<param>5</param>"),
        given("{}", content="<param>5</param></function>"),
    ),
    "character data without an end": (
        call('<param name="text"><![CDATA[a'),
        given('{"text": "a</function>'),
    ),
    "no name": ('<function name="">', Folded('<function name="">')),
    "HTML": (
        'Write <function name="a b">x</function>',
        Folded('Write <function name="a b">x</function>'),
    ),
    "cut in the name": ('<function name="pi', Folded('<function name="pi')),
    "cut in the mark": ("Well <func", Folded("Well <func")),
    "a lone end mark": ("a</function></param>b", Folded("a</function></param>b")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: MiniCpm5Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values() if len(text) < 1000])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: MiniCpm5Parser(TOOLS), text)


CUT_CASES = {
    "in a string": ('<function name="f"><param name="text">Par', '{"text": "Par'),
    "in a value's end": ('<function name="f"><param name="text">Par</', '{"text": "Par'),
    "in the beginning of character data": (
        '<function name="f"><param name="text"><![CD',
        '{"text": ',
    ),
    "in a number": ('<function name="f"><param name="count">12', '{"count": 12'),
    "in a key": ('<function name="f"><param name="cou', ""),
    "in the end": (PARIS[:-2], '{"text": "Paris'),
}


@pytest.mark.parametrize(("text", "arguments"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, arguments: str) -> None:
    check_parser(lambda: MiniCpm5Parser(TOOLS), text, given(arguments), FinishReason.LENGTH)


def thinking() -> Parser:
    return OutputFormat(MINICPM5, MINICPM5).make_parser(TOOLS, "")


def test_reasoning_is_parsed() -> None:
    check_parser(
        thinking, f"<think>\nhm {PING}\n</think>\n\n{PARIS}", Folded("", f"hm {PING}", [PARIS_CALL])
    )


FRAGMENTS = [
    *(
        '<function name="',
        "</function>",
        "<think>",
        "</think>",
        "\n",
        " ",
        '<param name="',
        "</param>",
        '">',
        "<param",
    ),
    *(
        '<function name="f">',
        '<param name="text">',
        '<param name="count">',
        '<param name="any">',
        "<![CDATA[",
        "]]>",
    ),
    *('"', "{", "5", "null", "</param></function>"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=MINICPM5).make_parser((), ""), [PARIS]) == Folded(PARIS)


def test_the_template_chooses() -> None:
    template = (
        '<tool_call></tool_call> <function name="..."><param name="...">...</param></function> '
        "<think>"
    )
    assert choose_output_format(template) == OutputFormat(MINICPM5, MINICPM5)
