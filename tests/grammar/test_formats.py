"""Each format accepts and refuses texts, token by token."""

import subprocess
import sys

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import Format, compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from tests.grammar.format_cases import (
    CASES,
    OBJECT,
    ONE,
    TEXT,
    const,
    either,
    sequence,
    tag,
    triggered,
)
from tests.grammar.runs import accepts, compile_text, started
from tests.grammar.tag_cases import TAG_CASES


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [case[1:] for case in CASES + TAG_CASES],
    ids=[case[0] for case in CASES + TAG_CASES],
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
def test_unsupported_formats_are_refused_by_name(format: Format, message: str) -> None:
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
