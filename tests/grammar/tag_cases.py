"""Lists formats of several tags with texts that they accept and refuse."""

from ouzel.grammar.formats import Format, add_reasoning
from tests.grammar.format_cases import (
    CALL,
    HERMES,
    NUMBER,
    OBJECT,
    ONE,
    ONE_AND_TWO,
    SCHEMA,
    const,
    separated,
    sequence,
    tag,
    triggered,
)

TAG_CASES: list[tuple[str, Format, list[str], list[str]]] = [
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
