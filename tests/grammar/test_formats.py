"""Each format accepts and refuses texts, token by token."""

import subprocess
import sys

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import Format, add_reasoning, compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from tests.grammar.runs import accepts, compile_text, started

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
OBJECT = {"type": "json_schema", "json_schema": SCHEMA}
NUMBER = {"type": "regex", "pattern": "[0-9]+"}
TEXT = {"type": "any_text"}


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Format) -> Format:
    return {"type": "or", "elements": list(elements)}


def tag(begin: str, content: Format, end: str | list[str]) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ONE_AND_TWO = [tag("<f=one>", OBJECT, "</f>"), tag("<f=two>", NUMBER, "</f>")]
ONE = [tag("<f=one>", OBJECT, "</f>")]
HERMES_BEGIN = '<tool_call>\n{"name": "w", "arguments": '
HERMES = [
    tag(HERMES_BEGIN, OBJECT, "}\n</tool_call>"),
    tag('<tool_call>\n{"name": "v"', NUMBER, "}\n</tool_call>"),
]
CALL = HERMES_BEGIN + '{"a": 1}}\n</tool_call>'


def triggered(trigger: str, tags: list[Format], **flags: object) -> Format:
    return {"type": "triggered_tags", "triggers": [trigger], "tags": tags, **flags}


def separated(**flags: object) -> Format:
    return {
        "type": "tags_with_separator",
        "separator": ",",
        "tags": [tag("<f>", OBJECT, "</f>")],
        **flags,
    }


BAD = {"type": "any_text", "excludes": ["BAD", "WOR/SE", "<think>"]}
NULL = {**SCHEMA, "properties": {"a": {"type": "null"}}}

CASES: list[tuple[str, Format, list[str], list[str]]] = [
    (
        "json_schema",
        OBJECT,
        ['{"a": 1}', '{"a":1}', '{\n  "a": 1\n}'],
        ['{"b":1}', ' {"a":1}', '{"a":1} ', '{"a":'],
    ),
    (
        "json_object",
        {"type": "json_object"},
        ["{}", '{"é": [1, {"b": null}]}'],
        ["[]", "1", '{"a"}', "{"],
    ),
    ("const_string", const("Hello World!"), ["Hello World!"], ["Hello World", "Hello World!!", ""]),
    ("const_string, escapes", const('a"b\\\n\x7f/😀'), ['a"b\\\n\x7f/😀'], ["a"]),
    ("const_string, empty", const(""), [""], ["a"]),
    ("const_string, with a mark", const("x</think>y"), ["x</think>y"], ["xy", "x</thinky"]),
    ("any_text", TEXT, ["", "x\n😀", "<b>"], ["x</think>"]),
    ("any_text, excludes", BAD, ["BA", "ok\n"], ["a BAD", "WOR/SE\n"]),
    ("any_text, max_chars", {"type": "any_text", "max_chars": 3}, ["é😀z", ""], ["abcd"]),
    (
        "regex",
        {"type": "regex", "pattern": r"^[a-z]{2}-\d+/$"},
        ["ab-12/"],
        ["a-1/", "ab-/", "ab-1"],
    ),
    (
        "choice",
        {"type": "choice", "choices": ["yes", "no", "yesterday"]},
        ["yes", "yesterday", "no"],
        ["ye", "maybe"],
    ),
    (
        "choice, with a mark",
        {"type": "choice", "choices": ["<think>", "no"]},
        ["<think>", "no"],
        ["<", ""],
    ),
    (
        "sequence, regular",
        sequence({"type": "regex", "pattern": "[a-z]+"}, const("abc")),
        ["abcabc", "xabc"],
        ["xabd"],
    ),
    (
        "sequence, mixed",
        sequence(const("A:"), OBJECT, const("\n")),
        ['A:{"a": 1}\n'],
        ['{"a": 1}', 'A:{"a": 1}'],
    ),
    (
        "sequence, text up to a literal",
        sequence(TEXT, const("ANSWER:"), OBJECT),
        ['hm ANSWER:{"a": 1}'],
        ['{"a": 1}', "x ANSWER:y"],
    ),
    (
        "sequence, text up to a mark",
        sequence(TEXT, const("</think>"), OBJECT),
        ['a {</think>{"a": 1}'],
        ['{"a": 1}', "</think>"],
    ),
    (
        "sequence, text up to one of some",
        sequence(TEXT, either(tag("<f>", OBJECT, "</f>"), const("</think>"))),
        ['x<f>{"a":1}</f>', "x</think>"],
        ["x", "x<f>a"],
    ),
    (
        "sequence, a choice that ends in text",
        sequence(either(OBJECT, TEXT), const("END")),
        ['{"a":1}END', "xEND"],
        ['{"a":1}'],
    ),
    (
        "sequence, constants that overlap",
        either(const("abc"), sequence(const("ab"), const("x"))),
        ["abc", "abx"],
        ["ab"],
    ),
    (
        "sequence, optional text",
        sequence({"type": "optional", "content": TEXT}, const("END")),
        ["END", "xEND"],
        ["x"],
    ),
    ("or", either(const("none"), OBJECT), ["none", '{"a": 2}'], ["nope", ""]),
    (
        "or of schemas",
        either(
            {"type": "json_schema", "json_schema": {"type": "integer"}},
            {**OBJECT, "json_schema": NULL},
        ),
        ["12", '{"a":null}'],
        ['"x"', ' {"a":null}'],
    ),
    (
        "tag",
        tag("<f>", OBJECT, "</f>"),
        ['<f>{"a": 1}</f>'],
        ['<f>{"b"', '<f>{"a":1}</g>', '<f>{"a":1}</f>x'],
    ),
    (
        "tag, text",
        tag("<f>", TEXT, "</f>"),
        ["<f>x < y</f>", "<f></f>"],
        ["<f>x</f>y", "<f>x</f>y</f>"],
    ),
    (
        "tag, several ends",
        tag("<f>", TEXT, ["</f>", "</g>"]),
        ["<f>x</g>", "<f></f>"],
        ["<f>x</g></f>"],
    ),
    (
        "tag, ends of two kinds",
        tag("<f>", TEXT, ["</f>", "</think>"]),
        ["<f>x</f>", "<f>x</think>"],
        ["<f>", "<f>x"],
    ),
    ("tag, no end", tag("<f>", TEXT, ""), ["<f>", "<f>x</f>"], ["f"]),
    ("tag, regular content", tag("(", NUMBER, ")"), ["(12)"], ["()", "(a)", "(12"]),
    (
        "tag, choice of texts",
        tag("<f>", either(NUMBER, OBJECT), "</f>"),
        ["<f>1</f>", '<f>{"a": 1}</f>'],
        ["<f></f>"],
    ),
    (
        "tag, marks",
        tag("<tool_call>\n", OBJECT, "\n</tool_call>"),
        ['<tool_call>\n{"a": 1}\n</tool_call>'],
        ['<tool_call>{"a": 1}', '{"a": 1}'],
    ),
    (
        "triggered_tags",
        triggered("<f", ONE_AND_TWO),
        ["", "hi", 'hi<f=one>{"a": 1}</f>x<f=two>7</f>', "a <"],
        ["x<f=three", "x<f=two>z", "<f"],
    ),
    (
        "triggered_tags, at_least_one",
        triggered("<f", ONE, at_least_one=True),
        ['<f=one>{"a": 1}</f> bye', '<f=one>{"a": 1}</f> <f=one>{"a": 1}</f>'],
        ["", 'hi<f=one>{"a": 1}</f>'],
    ),
    (
        "triggered_tags, stop_after_first",
        triggered("<f", ONE, stop_after_first=True),
        ["hi", 'hi<f=one>{"a": 1}</f>'],
        ['<f=one>{"a": 1}</f>x'],
    ),
    (
        "triggered_tags, one and no more",
        triggered("<f", ONE, at_least_one=True, stop_after_first=True),
        ['<f=one>{"a": 1}</f>'],
        ["", "x", '<f=one>{"a": 1}</f><f'],
    ),
    (
        "triggered_tags, text before at least one",
        triggered("<f", ONE, at_least_one=True, allow_text_before=True),
        ['Sure. <f=one>{"a": 1}</f> bye', '<f=one>{"a": 1}</f>'],
        ["", "Sure.", "Sure. <f"],
    ),
    (
        "triggered_tags, text before the only one",
        triggered("<f", ONE, at_least_one=True, allow_text_before=True, stop_after_first=True),
        ['Sure. <f=one>{"a": 1}</f>'],
        ["", 'Sure. <f=one>{"a": 1}</f> bye'],
    ),
    (
        "triggered_tags, a mark as trigger",
        triggered("<tool_call>", HERMES),
        [
            "hi",
            "ok" + CALL,
            CALL + "\n" + CALL + "bye",
            '<tool_call>\n{"name": "v"7}\n</tool_call>',
        ],
        ['<tool_call>\n{"name": "q"', "a</tool_call>", "a<tool_call>"],
    ),
    (
        "triggered_tags, a mark, required after text",
        triggered("<tool_call>", HERMES, at_least_one=True, allow_text_before=True),
        ["Sure." + CALL, CALL + CALL],
        ["Sure.", ""],
    ),
    (
        "triggered_tags, excludes",
        triggered("<f", ONE, excludes=["BAD"]),
        ['ok<f=one>{"a":1}</f>'],
        ["BAD", 'BAD<f=one>{"a":1}</f>', '<f=one>{"a":1}</f>BAD'],
    ),
    (
        "triggered_tags, two triggers",
        {
            "type": "triggered_tags",
            "triggers": ["<f", "[g"],
            "tags": [*ONE, tag("[g]", NUMBER, "[/g]")],
        },
        ['a [ <f=one>{"a":1}</f>[g]1[/g]b'],
        ["[g]x", "[ga"],
    ),
    (
        "triggered_tags, then more",
        sequence(triggered("<f", ONE), const("END")),
        ['a<f=one>{"a":1}</f>bEND'],
        ['a<f=one>{"a":1}</f>b'],
    ),
    (
        "tags_with_separator",
        separated(),
        ["", '<f>{"a": 1}</f>,<f>{"a": 2}</f>'],
        ["x", '<f>{"a": 1}</f><f>'],
    ),
    (
        "tags_with_separator, at_least_one",
        separated(at_least_one=True),
        ['<f>{"a": 1}</f>'],
        ["", "x"],
    ),
    (
        "tags_with_separator, one",
        separated(stop_after_first=True),
        ["", '<f>{"a": 1}</f>'],
        ['<f>{"a": 1}</f>,'],
    ),
    (
        "tags_with_separator, exactly one",
        separated(stop_after_first=True, at_least_one=True),
        ['<f>{"a": 1}</f>'],
        ["", '<f>{"a": 1}</f>,'],
    ),
    (
        "optional",
        {"type": "optional", "content": tag("<a>", OBJECT, "")},
        ["", '<a>{"a":1}'],
        ["<a>"],
    ),
    (
        "plus",
        {"type": "plus", "content": tag("<a>", NUMBER, ";")},
        ["<a>1;", "<a>1;<a>2;"],
        ["", "<a>1"],
    ),
    (
        "star",
        {"type": "star", "content": tag("<a>", OBJECT, ";")},
        ["", '<a>{"a":1};<a>{"a":2};'],
        ["<a>"],
    ),
    (
        "repeat",
        {"type": "repeat", "content": tag("<a>", OBJECT, ""), "min": 1, "max": 2},
        ['<a>{"a":1}', '<a>{"a":1}<a>{"a":2}'],
        ["", '<a>{"a":1}<a>{"a":2}<a>{"a":2}'],
    ),
    (
        "repeat, no limit",
        {"type": "repeat", "content": const("ab"), "min": 2, "max": -1},
        ["abab", "ababab"],
        ["ab"],
    ),
    ("token", {"type": "token", "token": "</think>"}, ["</think>"], ["", "<think>"]),
    (
        "any_tokens",
        {"type": "any_tokens", "exclude_tokens": ["</think>"], "max_tokens": 2},
        ["", "é", "<think><think>"],
        ["<think><think><think>", "</think>"],
    ),
    (
        "exclude_token",
        {"type": "exclude_token", "exclude_tokens": ["<think>"]},
        ["a", "</think>"],
        ["", "<think>"],
    ),
    ("structural_tag", {"type": "structural_tag", "format": const("x")}, ["x"], [""]),
    (
        "structural_tag, older form",
        {
            "type": "structural_tag",
            "structures": [{"begin": "<f=one>", "schema": SCHEMA, "end": "</f>"}],
            "triggers": ["<f="],
        },
        ["hi", 'hi<f=one>{"a": 1}</f>'],
        ["<f=two"],
    ),
    (
        "reasoning, open",
        add_reasoning(OBJECT, start="<think>", ends=["</think>"], is_open=True),
        ['hm {"x"</think>\n\n{"a": 1}', '</think>{"a": 1}'],
        ['{"a": 1}', 'x</think>{"b"', 'x</think>\n\n\n{"a": 1}', "x"],
    ),
    (
        "reasoning, not open",
        add_reasoning(OBJECT, start="<think>", ends=["</think>"], is_open=False),
        ['<think>x</think>\n\n{"a": 1}', '{"a": 1}'],
        ["x</think>", '<think>{"a": 1}'],
    ),
    (
        "reasoning, plain marks",
        add_reasoning(OBJECT, start="[T]", ends=["[/T]"], is_open=True),
        ['hm[/T]\n{"a": 1}'],
        ['{"a": 1}', "x[/T]{}"],
    ),
    (
        "reasoning, plain marks, not open",
        add_reasoning(OBJECT, start="[T]", ends=["[/T]"], is_open=False),
        ['[T]hm[/T]\n{"a": 1}', '{"a": 1}'],
        ["hm", "x[/T]{}"],
    ),
    (
        "reasoning, then calls",
        add_reasoning(
            triggered("<tool_call>", HERMES), start="<think>", ends=["</think>"], is_open=False
        ),
        [f"<think>I could call</think>\n\nHi{CALL}", "Hi", CALL, f"<think></think>{CALL}"],
        ["<think>a", "<think></think><tool_call>x"],
    ),
    (
        "reasoning, then a text",
        add_reasoning(const("\n\n\nyes"), start="<think>", ends=["</think>"], is_open=True),
        ["a</think>\n\n\nyes", "a</think>\n\n\n\nyes"],
        ["a</think>yes"],
    ),
]


@pytest.mark.parametrize(
    ("format", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_format_accepts_its_texts_and_no_others(
    format: Format, good: list[str], bad: list[str]
) -> None:
    session = started(format)
    assert {text: accepts(session, text) for text in good + bad} == dict.fromkeys(
        good, True
    ) | dict.fromkeys(bad, False)


REFUSED: list[tuple[Format, str]] = [
    ({"type": "text"}, "format.type must be one of any_text, .*given 'text'"),
    ({}, "format.type is missing"),
    ({"type": "const_string"}, "format.value is missing"),
    ({"type": "const_string", "value": 1}, "format.value must be a string"),
    ({"type": "const_string", "value": "x", "colour": 1}, "format.colour is not supported"),
    (const("x" * 10_241), "literal must be <= 10240, given 10241"),
    (const("\ud800"), "surrogate"),
    (sequence(TEXT, OBJECT), "unlimited text must come last"),
    (sequence(TEXT, triggered("<f", ONE)), "unlimited text must come last"),
    ({"type": "star", "content": sequence(OBJECT, TEXT)}, "unlimited text must come last"),
    ({"type": "sequence", "elements": []}, "format.elements must have at least 1, given 0"),
    (
        sequence(const("a"), {"type": "regex", "pattern": "(?=x)"}),
        r"format.elements\[1\].pattern has look-around",
    ),
    (either(tag("<f", OBJECT, ""), tag("<f>", OBJECT, "")), "'<f' begins '<f>'"),
    (triggered("<f", [*ONE, tag("<f=one>2", OBJECT, "")]), "'=one>' begins '=one>2'"),
    (
        triggered("<g", ONE),
        r"format.tags\[0\].begin must begin with exactly one of the triggers, given '<f=one>'",
    ),
    (
        {"type": "triggered_tags", "triggers": ["<f", "<g"], "tags": ONE},
        "'<g', but no tag begins with it",
    ),
    (
        {"type": "triggered_tags", "triggers": ["<f", "<f="], "tags": ONE},
        "'<f=', which contains '<f'",
    ),
    ({"type": "triggered_tags", "triggers": [""], "tags": ONE}, "empty string"),
    (triggered("<f", ONE * 1025), "format.tags must be <= 1024, given 1025"),
    (triggered("<f", ONE, at_least_one=1), "format.at_least_one must be true or false"),
    (tag("<f>", TEXT, ["</f>", ""]), "format.end must not have an empty string beside others"),
    (
        sequence(*[either(tag("x", OBJECT, "y"), sequence(const("q"), TEXT))] * 30),
        "parts of .* must be <= 20000",
    ),
    ({"type": "token", "token": "<nope>"}, "special token, given '<nope>'"),
    ({"type": "token", "token": 10**6}, "given 1000000"),
    (
        {"type": "repeat", "content": OBJECT, "min": 3, "max": 2},
        r"format.min must be <= max \(2\), given 3",
    ),
    (
        {"type": "repeat", "content": OBJECT, "min": 0, "max": 10**9},
        "format.max must be <= 10000, given 1000000000",
    ),
    ({"type": "choice", "choices": ["a"] * 10_001}, "format.choices must be <= 10000, given 10001"),
    ({"type": "any_text", "max_chars": -1}, "format.max_chars must be >= 0, given -1"),
    (
        {"type": "json_schema", "json_schema": {}, "style": "deepseek_xml"},
        "format.style must be .*given 'deepseek_xml'",
    ),
    ({"type": "const_string", "value": "é" * 300_000}, "<= 262144, given 3000"),
]


@pytest.mark.parametrize(("format", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_honoured_is_refused_by_name(format: Format, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        compile_text(format)


def test_deep_nesting_is_refused_before_anything_recurses() -> None:
    format: Format = OBJECT
    for _ in range(50_000):
        format = sequence(format)
    with pytest.raises(GrammarError, match="nesting of the format must be <= 100, given 101"):
        compile_text(format)


def test_openais_envelope_of_a_schema_is_opened() -> None:
    envelope = {
        "name": "x",
        "strict": True,
        "schema": {"type": "object", "properties": {"a": True}, "colour": 1},
    }
    with pytest.raises(GrammarError, match="'colour' at # is not supported in strict mode"):
        compile_text({"type": "json_schema", "json_schema": envelope})


def test_ranges_of_tokens_hold_neither_padding_nor_an_end() -> None:
    small = GrammarVocabulary({"<x>": 5}, 10, eos_token_ids=(3,))
    text = compile_format(
        {"type": "exclude_token", "exclude_tokens": ["<x>"]}, small, strict=False, styles={}
    )
    assert "<[0-2,4,6-9]>" in text


def test_formats_are_compiled_without_the_native_library() -> None:
    program = "import sys, ouzel.grammar.formats; sys.exit('llguidance' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
