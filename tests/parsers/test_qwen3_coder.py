"""The parser reads the output of Qwen3-Coder, Qwen 3.5 and Qwen 3.6."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.families.qwen3_coder import QWEN3_CODER, Qwen3CoderParser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "list": {"type": "array"},
    "object": {"type": "object"},
    "nothing": {"type": "null"},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "either": {"type": ["integer", "string"]},
    "level": {"$ref": "#/$defs/level"},
    "code": {"enum": ["1", 2, "x"]},
    "any": {},
}
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": PROPERTIES,
    "$defs": {"level": {"enum": ["1", "2"]}},
}
TOOLS = (FunctionTool("f", parameters=SCHEMA), FunctionTool("ping"))


def parameter(key: str, value: str) -> str:
    return f"<parameter={key}>\n{value}\n</parameter>\n"


def call(*parameters: str, name: str = "f") -> str:
    return f"<tool_call>\n<function={name}>\n{''.join(parameters)}</function>\n</tool_call>"


def given(arguments: str, *, content: str = "") -> Folded:
    return Folded(content, calls=[("f", arguments)])


PARIS = call(parameter("text", "Paris"))
PARIS_CALL = ("f", '{"text": "Paris"}')
PING = call(name="ping")
MARKERS = (
    "<tool_call>\n<function=x>\n<parameter=y>\n1\n</parameter> or </function></tool_call> <think>"
)

VALUES = {  # key: (the model's text, JSON)
    "a string": ("text", 'say "hi" \\n', '"say \\"hi\\" \\\\n"'),
    "a string of digits": ("text", "007", '"007"'),
    "a string that is JSON": ("text", ' {"a": 1}\t', '" {\\"a\\": 1}\\t"'),
    "an empty string": ("text", "", '""'),
    "lines": ("text", "\n\na\n b\n\n", '"\\n\\na\\n b\\n\\n"'),
    "unicode": ("text", "é😀 中\u2028\x00", '"é😀 中\u2028\\u0000"'),
    "XML in a string": ("text", "<a>\n<b c='d'/></a>", "\"<a>\\n<b c='d'/></a>\""),
    "markers in a string": ("text", MARKERS, '"' + MARKERS.replace("\n", "\\n") + '"'),
    "an integer": ("count", "-42", "-42"),
    "a huge integer": ("count", "9" * 5000, "9" * 5000),
    "spaces around an integer": ("count", " 5 ", "5"),
    "a number": ("ratio", "-0.10e400", "-0.10e400"),
    "a boolean": ("flag", "true", "true"),
    "a boolean of Python": ("flag", "False", "false"),
    "null": ("nothing", "None", "null"),
    "a list": ("list", '[1, {"a": "]"}]', '[1, {"a": "]"}]'),
    "a list of Python": ("list", "['a', True, None, (1, 2.5)]", '["a", true, null, [1, 2.5]]'),
    "half a character of Python": ("list", "['\\ud83d']", '["\\ud83d"]'),
    "a tuple of Python": ("list", "('é', )", '["é"]'),
    "an object of Python": (
        "object",
        "{'a': {'b': [False]}, 1: \"it's\"}",
        '{"a": {"b": [false]}, "1": "it\'s"}',
    ),
    "infinity of Python": ("list", "[1e999]", "[1e999]"),
    "an object": ("object", '{"a" : {"b":[]} }', '{"a" : {"b":[]} }'),
    "null that may be a string": ("maybe", "null", "null"),
    "a string that may be null": ("maybe", "nullable", '"nullable"'),
    "a string, not null": ("maybe", "5", '"5"'),
    "an integer that may be a string": ("either", "5", "5"),
    "a string that may be an integer": ("either", "five", '"five"'),
    "a reference to an enum": ("level", "1", '"1"'),
    "listed as a string": ("code", "1", '"1"'),
    "listed as a number": ("code", "2", "2"),
    "no type, JSON": ("any", "[1]", "[1]"),
    "no type, text": ("any", "- one\n- two", '"- one\\n- two"'),
    "no type, a string of JSON": ("any", '"a"', '"a"'),
    "quotes of a string that may be null": ("maybe", '"a"', '"\\"a\\""'),
    "no type, NaN": ("any", "NaN", '"NaN"'),
    "a parameter that is not listed": ("other", "1.50", "1.50"),
    "a key with dots": ("a.b-c d", "x", '"x"'),
}

GOOD: dict[str, tuple[str, Folded]] = {
    **{
        name: (call(parameter(key, value)), given(f'{{"{key}": {expected}}}'))
        for name, (key, value, expected) in VALUES.items()
    },
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n", Folded(" \n")),
    "two parameters": (
        call(parameter("count", "1"), parameter("text", "x")),
        given('{"count": 1, "text": "x"}'),
    ),
    "no parameters": (PING, Folded(calls=[("ping", "{}")])),
    "without blanks": (
        "<tool_call><function=f><parameter=text>a</parameter><parameter=count>1</parameter></function></tool_call>",
        given('{"text": "a", "count": 1}'),
    ),
    "no outer tag": (PARIS[12:-13], given('{"text": "Paris"}')),
    "no first outer tag": (PARIS[12:], given('{"text": "Paris"}')),
    "no last outer tag": (PARIS[:-13] + " so", given('{"text": "Paris"}', content=" so")),
    "no end of the function": (
        call(parameter("count", "1")).replace("</function>\n", ""),
        given('{"count": 1}'),
    ),
    "two calls": (f"{PARIS}\n{PING}", Folded(calls=[PARIS_CALL, ("ping", "{}")])),
    "two calls, nothing between": (PARIS + PARIS, Folded(calls=[PARIS_CALL] * 2)),
    "two functions in one tag": (
        "<tool_call>\n<function=ping>\n</function>\n<function=ping></function>\n</tool_call>",
        Folded(calls=[("ping", "{}")] * 2),
    ),
    "a call where the last did not end": (
        "<tool_call><function=f><parameter=count>1</parameter>" + PING,
        Folded(calls=[("f", '{"count": 1}'), ("ping", "{}")]),
    ),
    "text around": (
        f"I look.\n\n{PARIS} b {PING}\nc",
        Folded("I look.\n\n b \nc", calls=[PARIS_CALL, ("ping", "{}")]),
    ),
    "unknown tool": (
        call(parameter("a", "5"), name="nobody"),
        Folded(calls=[("nobody", '{"a": 5}')]),
    ),
}

NO_LISTS = {  # the model's text: JSON
    "an object of Python where a list is due": ("{'a': 1}", "\"{'a': 1}\""),
    "a call of Python": ("[open('x')]", "\"[open('x')]\""),
    "a set of Python": ("[{1}]", '"[{1}]"'),
    "brackets of Python without end": ("[" * 5000 + "'", '"' + "[" * 5000 + "'\""),
}

OTHERS: dict[str, tuple[str, Folded]] = {
    **{
        f"{name} is no list": (call(parameter("list", value)), given(f'{{"list": {expected}}}'))
        for name, (value, expected) in NO_LISTS.items()
    },
    "no end at all": ("<function=f>\n" + parameter("count", "1"), given('{"count": 1}')),
    "text inside a call": (
        f"<function=f>\n{parameter('count', '1')}oh</function>",
        given('{"count": 1}', content="\noh</function>"),
    ),
    "a value without its end": (
        "<function=f>\n<parameter=text>\na b",
        given('{"text": "a b'),
    ),
    "not a function": ("<tool_call>\nhi\n</tool_call>", Folded("<tool_call>\nhi\n</tool_call>")),
    "JSON": (
        '<tool_call>\n{"name": "f"}\n</tool_call>',
        Folded('<tool_call>\n{"name": "f"}\n</tool_call>'),
    ),
    "no name": ("<function=>\n</function>", Folded("<function=>\n</function>")),
    "cut in the name": ("a<function=pi", Folded("a<function=pi")),
    "cut in the mark": ("Well <tool_c", Folded("Well <tool_c")),
    "a lone end mark": ("a</tool_call></function>b", Folded("a</tool_call></function>b")),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: Qwen3CoderParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values() if len(text) < 1000])
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: Qwen3CoderParser(TOOLS), text)


CUT_CASES = {
    "in a string": ("<function=f>\n<parameter=text>\nPar", '{"text": "Par'),
    "in a string's last newline": ("<function=f>\n<parameter=text>\nPar\n", '{"text": "Par'),
    "in a value's end": ("<function=f>\n<parameter=text>\nPar\n</para", '{"text": "Par'),
    "before it shows whether it is the end": (
        "<function=f>\n<parameter=text>\nPar\n</parameter>\n<",
        '{"text": "Par',
    ),
    "in a number": ("<function=f>\n<parameter=count>\n12", '{"count": 12'),
    "in a key": ("<function=f>\n<parameter=co", ""),
    "after the name": ("<tool_call>\n<function=f>\n", ""),
    "in the outer end": (PARIS[:-5], '{"text": "Paris"}'),
}


@pytest.mark.parametrize(("text", "arguments"), CUT_CASES.values(), ids=CUT_CASES)
def test_a_truncated_text_is_kept_without_marks(text: str, arguments: str) -> None:
    check_parser(lambda: Qwen3CoderParser(TOOLS), text, given(arguments), FinishReason.LENGTH)


def test_a_string_streams_while_it_comes() -> None:
    parser = Qwen3CoderParser(TOOLS)
    assert parser.feed("<function=f>\n<parameter=text>\n")
    assert [delta for piece in ("Once ", "upon") for delta in parser.feed(piece)]


def thinking() -> Parser:
    return OutputFormat(QWEN3_CODER, QWEN3_CODER).make_parser(TOOLS, "")


def test_reasoning_is_parsed() -> None:
    check_parser(
        thinking, f"<think>\nhm {PING}\n</think>\n\n{PARIS}", Folded("", f"hm {PING}", [PARIS_CALL])
    )


FRAGMENTS = [
    *(
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "\n",
        " ",
        "<parameter=",
        "</parameter>",
        ">",
        "<para",
    ),
    *(
        "<function=",
        "</function>",
        "<function=f>",
        "<parameter=text>",
        "<parameter=count>",
        "<parameter=any>",
    ),
    *("\n</parameter>\n", '"', "{", "5", "null", "</function>\n</tool_call>"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(lambda: OutputFormat(calls=QWEN3_CODER).make_parser((), ""), [PARIS]) == Folded(
        PARIS
    )


def test_the_template_chooses() -> None:
    template = (
        "<tool_call>\n<function=...>\n<parameter=...>\n</parameter>\n</function>\n</tool_call>\n"
        "<think>"
    )
    assert choose_output_format(template) == OutputFormat(QWEN3_CODER, QWEN3_CODER)
    assert choose_output_format("<tool_call></tool_call>").calls is HERMES
