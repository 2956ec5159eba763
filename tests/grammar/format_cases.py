"""Lists formats of structured output with texts that they accept and refuse."""

from ouzel.grammar.formats import Format

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
]
