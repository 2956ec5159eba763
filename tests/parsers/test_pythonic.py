"""The parser reads the output of Llama 4, LFM2 and OLMo 3."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.pythonic import LFM2, LLAMA4, OLMO3, PYTHONIC, PythonicParser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {"text": {"type": "string"}, "count": {"type": "integer"}}
TOOLS = (
    FunctionTool("f", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)
START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def calls(*items: str) -> str:
    return f"{START}[{', '.join(items)}]{END}"


def given(arguments: str, *, content: str = "") -> Folded:
    return Folded(content, calls=[("f", arguments)])


PARIS = 'f(text="Paris")'
PARIS_CALL = ("f", '{"text": "Paris"}')
PING_CALL = ("ping", "{}")
MARKERS = "<|tool_call_end|>[f(x=1)], <|python_end|>)] <|tool_call_start|>"

VALUES = {  # the model's text: JSON
    "double quotes": ('"it\'s \\"so\\""', '"it\'s \\"so\\""'),
    "single quotes": ("'say \"hi\", it\\'s'", '"say \\"hi\\", it\'s"'),
    "triple quotes": ('"""a "b"\n, c"""', '"a \\"b\\"\\n, c"'),
    "a quote that is not escaped": ("'it's fine'", '"it\'s fine"'),
    "an empty string": ('""', '""'),
    "markers in a string": (f'"{MARKERS}"', f'"{MARKERS}"'),
    "code in a string": (
        "\"def g(x=1):\\n  return {'a': [x]} >= 2\"",
        "\"def g(x=1):\\n  return {'a': [x]} >= 2\"",
    ),
    "escapes": (r"'\t\\ \x41\101\0 \u00e9\U0001F600 \d\q\a'", r'"\t\\ AA\u0000 é😀 \\d\\q\u0007"'),
    "a surrogate pair": (r'"\ud83d\ude00"', r'"\ud83d\ude00"'),
    "unicode": ('"é😀 中"', '"é😀 中"'),
    "a negative integer": ("-42", "-42"),
    "a huge integer": ("9" * 5000, "9" * 5000),
    "a huge decimal": ("-1.10e+400", "-1.10e+400"),
    "numbers of Python": ("[1_000, +5, .5, 5., -0]", "[1000, 5, 0.5, 5.0, -0]"),
    "words of Python": ("[True, False, None]", "[true, false, null]"),
    "words of JSON": ("[true, false, null]", "[true, false, null]"),
    "a word": ("celsius", '"celsius"'),
    "a zip code": ("01234", '"01234"'),
    "a list": ("['a', [1, []], \"]\"]", '["a", [1, []], "]"]'),
    "a last comma": ("[1, 2,]", "[1, 2]"),
    "a tuple": ("(1, 'x')", '[1, "x"]'),
    "a dictionary": (
        "{'a': {'b': [{}]}, \"c\" : -1, 2: 'x:y'}",
        '{"a": {"b": [{}]}, "c": -1, "2": "x:y"}',
    ),
    "JSON": ('{"a":{"b":[1,{"c":null}]}}', '{"a": {"b": [1, {"c": null}]}}'),
}

GOOD: dict[str, tuple[str, Folded]] = {
    **{
        name: (calls(f"f(x={value})"), given(f'{{"x": {expected}}}'))
        for name, (value, expected) in VALUES.items()
    },
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "no mark": (f"[{PARIS}]", given('{"text": "Paris"}')),
    "no mark, after a line": (f"\n[{PARIS}, ping()]\n", Folded(calls=[PARIS_CALL, PING_CALL])),
    "Llama 4": (f"<|python_start|>[{PARIS}]<|python_end|>", Folded(calls=[PARIS_CALL])),
    "Llama 4 without an end": (f"<|python_start|>[{PARIS}]", Folded(calls=[PARIS_CALL])),
    "OLMo 3": (
        f"<function_calls>\n{PARIS}\nping()\n</function_calls>",
        Folded(calls=[PARIS_CALL, PING_CALL]),
    ),
    "LFM2": (calls(PARIS), Folded(calls=[PARIS_CALL])),
    "two calls": (calls(PARIS, "ping()"), Folded(calls=[PARIS_CALL, PING_CALL])),
    "two calls, no blanks": (
        f"{START}[{PARIS},ping()]{END}",
        Folded(calls=[PARIS_CALL, PING_CALL]),
    ),
    "two lists": (calls(PARIS) + "\n" + calls("ping()"), Folded(calls=[PARIS_CALL, PING_CALL])),
    "blanks": (f"{START} [ f ( ) ] {END}".replace("f (", "f("), Folded(calls=[("f", "{}")])),
    "blanks between": (calls("f( text = 'a' ,\n count=1 )"), given('{"text": "a", "count": 1}')),
    "a last comma of arguments": (calls("f(count=1,)"), given('{"count": 1}')),
    "all in a dictionary": (
        calls("f(**{'text': 'a', 'b-c': 1})"),
        given('{"text": "a", "b-c": 1}'),
    ),
    "a string by its schema": (calls("f(text=5, count='5')"), given('{"text": "5", "count": "5"}')),
    "text around": (
        f"a {calls('ping()')} b {calls('ping()')}c",
        Folded("a  b c", calls=[PING_CALL] * 2),
    ),
    "unknown tool, with a mark": (calls("no.body(a=1)"), Folded(calls=[("no.body", '{"a": 1}')])),
}

ANSWERS = {
    "a list": "[1, 2, 3]",
    "an unknown tool, no mark": "[nobody(a=1)]",
    "a tool, not at the beginning": f"Write [{PARIS}].",
    "arguments without names": calls("f('Paris')"),
    "a Markdown link": "[f](https://example.com)",
    "no parentheses": calls("f"),
    "cut in the name": f"{START}[pin",
    "cut in the mark": "Well <|tool_",
    "a lone end mark": "a<|tool_call_end|>b",
}

OTHERS: dict[str, tuple[str, Folded]] = {
    **{f"answer: {name}": (text, Folded(text)) for name, text in ANSWERS.items()},
    "a broken one after a good one": (calls(PARIS, "!"), Folded(f", !]{END}", calls=[PARIS_CALL])),
    "no closing parenthesis": (calls("f(count=1"), given('{"count": 1}')),
    "no closing bracket": (f"{START}[f(count=1){END}.", given('{"count": 1}', content=".")),
    "no value": (calls("f(a=, b=1)"), given('{"a": , "b": 1}')),
    "no value, and another call": (
        calls("f(a=)", "ping()"),
        Folded(calls=[("f", '{"a": }'), ("ping", "{}")]),
    ),
    "no value at the end": (calls("f(b=1, a= )"), given('{"b": 1, "a": }')),
    "no value in a list": (calls("f(a=[1,,2])"), given('{"a": [1, , 2]}')),
    "no value in an object": (calls("f(a={'b':})"), given('{"a": {"b": }}')),
    "something after a value": (calls("f(a=[1] + b)"), given('{"a": [1]}', content=f" + b)]{END}")),
    "a string without an end": (f"{START}[f(text='a", given('{"text": "a')),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: PythonicParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values() if len(text) < 1000])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: PythonicParser(TOOLS), text)


CUT_CASES = {
    "in a string": ('[f(text="Par', '{"text": "Par'),
    "at a quote": ('[f(text="Par"', '{"text": "Par'),
    "in an escape": ('[f(text="Par\\u00', '{"text": "Par'),
    "in a number": ("[f(count=12", '{"count": 12'),
    "in a word": ("[f(x=Fal", '{"x": '),
    "in a key": ("[f(count=12, te", '{"count": 12'),
    "in a key of a dictionary": ("[f(x={'a': 1, 'b", '{"x": {"a": 1, "b'),
    "in a list": ("[f(x=[1, ", '{"x": [1'),
    "before the next call": ("[f(count=12), ", '{"count": 12}'),
    "in the end mark": (calls("f(count=12)")[:-3], '{"count": 12}'),
}


@pytest.mark.parametrize(("text", "arguments"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, arguments: str) -> None:
    check_parser(lambda: PythonicParser(TOOLS), text, given(arguments), FinishReason.LENGTH)


def test_any_depth_is_read() -> None:
    depth = 5000
    text = calls(f"f(x={'[' * depth}{']' * depth})")
    assert parse(lambda: PythonicParser(TOOLS), [text]) == given(
        f'{{"x": {"[" * depth}{"]" * depth}}}'
    )


def test_a_string_streams_while_it_comes() -> None:
    parser = PythonicParser(TOOLS)
    parser.feed("[f(text='")
    assert all(parser.feed(piece) for piece in ("Once ", "upon", " a"))


def test_an_answer_in_a_list_is_not_held_back() -> None:
    assert PythonicParser(TOOLS).feed("[Once upon a ti")


def thinking() -> Parser:
    return OutputFormat(LFM2, LFM2).make_parser(TOOLS, "")


def test_reasoning_is_parsed() -> None:
    check_parser(
        thinking,
        f"<think>hm {calls(PARIS)}</think>{calls('ping()')}",
        Folded("", f"hm {calls(PARIS)}", [PING_CALL]),
    )


FRAGMENTS = [
    *(
        START,
        END,
        "<think>",
        "</think>",
        "\n",
        " ",
        "[",
        "]",
        "f(",
        "ping(",
        ")",
        "a=",
        "text=",
        ",",
        "{",
        "}",
        ":",
    ),
    *(
        '"',
        "'",
        '"""',
        "\\",
        "\\u00",
        "5",
        "None",
        "**",
        "(",
        "<|tool",
        "<function_calls>",
        "[f(text='",
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=LFM2).make_parser((), ""), [calls(PARIS)]) == Folded(
        calls(PARIS)
    )


def test_the_template_chooses() -> None:
    assert choose_output_format(START).calls is LFM2
    assert choose_output_format("<|python_start|>").calls is LLAMA4
    assert (
        choose_output_format("<functions></functions><function_calls></function_calls>").calls
        is OLMO3
    )
    assert choose_output_format("[func_name1(params_name1=params_value1, ...)]").calls is PYTHONIC
