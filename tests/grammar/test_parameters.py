"""Tests grammars that force arguments in the XML of Qwen3-Coder, GLM and MiniCPM5."""

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import Format
from tests.grammar.runs import accepts, compile_text, started

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}


def of(schema: object) -> Format:
    return {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}


def one(schema: object, **more: object) -> Format:
    return of({"type": "object", "properties": {"x": schema}, "required": ["x"], **more})


def x(value: str) -> str:
    return f"<parameter=x>\n{value}\n</parameter>\n"


CALL = {
    "type": "tag",
    "begin": "<tool_call>\n<function=weather>\n",
    "content": of(CITY),
    "end": "\n</function>\n</tool_call>",
}
NODE = {
    "$defs": {"level": {"enum": ["low", "high"]}},
    "properties": {"x": {"$ref": "#/$defs/level"}},
    "required": ["x"],
}

CASES: list[tuple[str, Format, list[str], list[str]]] = [
    (
        "parameters",
        {"type": "qwen_xml_parameter", "json_schema": CITY},
        [
            "<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n",
            "<parameter=city>a<b</parameter>",
            "\n<parameter=city>1</parameter><parameter=days>-3</parameter>",
        ],
        [
            "<parameter=days>3",
            "<parameter=city>x</parameter><parameter=x>",
            "",
            "<parameter=city>x",
        ],
    ),
    (
        "in a call",
        CALL,
        [
            (
                "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
                "</function>\n</tool_call>"
            ),
            "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
            "<parameter=days>\n3\n</parameter>\n"
            "</function>\n</tool_call>",
        ],
        [
            "<tool_call>\n<function=weather>\n</function>\n</tool_call>",
            "<tool_call>\n<function=other>",
        ],
    ),
    (
        "enum",
        one({"enum": ["a", "b c", 3, None]}),
        [x("a"), x("b c"), x("3"), x("null")],
        [x("d"), x('"a"')],
    ),
    ("const", one({"const": "a"}), [x("a")], [x("b")]),
    ("reference", of(NODE), [x("low")], [x("mid")]),
    (
        "object",
        one({"type": "object", "properties": {"y": {"type": "null"}}}),
        [x('{"y": null}')],
        [x('{"y": 1}')],
    ),
    ("pattern", one({"type": "string", "pattern": "b+"}), [x("abc"), x("b")], [x("ac"), x("")]),
    ("anchored pattern", one({"type": "string", "pattern": "^b+$"}), [x("bb")], [x("abc"), x("")]),
    (
        "lengths",
        one({"type": "string", "minLength": 2, "maxLength": 3}),
        [x("ab"), x("é😀\n")],
        [x("a"), x("abcd")],
    ),
    (
        "format",
        one({"type": "string", "format": "date"}),
        [x("2024-02-29")],
        [x("2023-02-29"), x("today")],
    ),
    (
        "nullable string",
        one({"type": ["string", "null"]}),
        [x("any"), x("null")],
        ["<parameter=x>"],
    ),
    (
        "nullable with bounds",
        one({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}),
        [x("ab"), x("null")],
        [x("abc")],
    ),
    ("no type", one({}), [x("any"), x("[1]")], []),
    (
        "others, with a schema",
        one({"type": "integer"}, additionalProperties={"type": "boolean"}),
        [x("1"), x("1") + "<parameter=y>true</parameter>"],
        [x("1") + x("true"), x("1") + "<parameter=y>2</parameter>"],
    ),
    (
        "no parameters",
        of({"type": "object", "properties": {}, "additionalProperties": False}),
        ["", "\n"],
        [x("1")],
    ),
    ("any parameters", of({"type": "object"}), ["", x("1") + "<parameter=y>2</parameter>"], ["x"]),
]


@pytest.mark.parametrize(
    ("format", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_parameters_are_accepted_as_their_schema_says(
    format: Format, good: list[str], bad: list[str]
) -> None:
    session = started(format)
    assert [text for text in good if not accepts(session, text)] == []
    assert [text for text in bad if accepts(session, text)] == []


STYLES = {
    "glm_xml": (
        (
            "<arg_key>city</arg_key>\n<arg_value>Rome\n</arg_value>\n"
            "<arg_key>days</arg_key><arg_value>3</arg_value>"
        ),
        "<arg_key>days</arg_key>\n<arg_value>x</arg_value>",
    ),
    "minicpm_xml": (
        '<param name="city">Rome</param><param name="days">3</param>\n',
        '<param name="days">x</param>',
    ),
}


@pytest.mark.parametrize(
    ("style", "good", "bad"), [(style, *texts) for style, texts in STYLES.items()]
)
def test_other_marks(style: str, good: str, bad: str) -> None:
    session = started({"type": "json_schema", "json_schema": CITY, "style": style})
    assert accepts(session, good)
    assert not accepts(session, bad)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"allOf": [CITY]}, "the keyword 'allOf' at # of format.json_schema is not supported"),
        ({"required": ["x"]}, "requires 'x', which is missing in its properties"),
        ({"properties": {"x": {"type": "string", "pattern": r"\b"}}}, "word boundary"),
        ({"properties": {"x": {"type": "string", "pattern": "a|^b"}}}, r"'\^' within the pattern"),
        ({"properties": {"x": False}}, "admits nothing"),
        (
            {"properties": {"x": {"type": ["string", "null"], "allOf": [{"maxLength": 2}]}}},
            "keyword 'allOf' of a string",
        ),
    ],
)
def test_rules_that_cannot_be_enforced_on_parameters_are_refused(
    schema: object, message: str
) -> None:
    with pytest.raises(GrammarError, match=message):
        compile_text(of(schema))


def test_alternatives_of_alternatives_have_a_limit() -> None:
    """Six alternatives in each of nine levels would take hours to write out."""
    definitions: dict[str, object] = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 6} for n in range(9)
    }
    schema = {
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, "d9": {"type": "integer"}},
    }
    with pytest.raises(
        GrammarError,
        match=r"the number of alternatives of a parameter .* must be <= 200, given 201",
    ):
        compile_text(of(schema))
