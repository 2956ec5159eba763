"""The parser reads formats that a model's own `response_template` describes."""

import json

import numpy as np
import pytest

from ouzel.parsers.base import Calls, Family, Format, Parser
from ouzel.parsers.registry import OutputFormat
from ouzel.parsers.response_template import read_response_template
from ouzel.parsers.templated_parser import TemplatedParser, make_templated_family
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.grammar.runs import random_walk, started
from tests.parsers.cutting import (
    Folded,
    check_any_text,
    check_cut_marks,
    check_parser,
    check_truncation,
    parse,
)

TOOLS = (FunctionTool("get_weather", parameters={"type": "object"}), FunctionTool("ping"))
FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}

# SmolLM and Hermes: one object in tags, and content around them
TAGS: dict[str, object] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>", "content": "text"},
        "tool_calls": {
            "open": "<call>",
            "close": "</call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {
            "close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)\s*|$",
            "content": "text",
        },
    },
}
# Harmony: the name in the mark, and a mark around everything
CHANNELS: dict[str, object] = {
    "start_anchor": "<|start|>model",
    "fields": {
        "reasoning_content": {
            "open": "<|to|>self<|say|>",
            "close": "<|end|>",
            "repeats": True,
            "join": "\n",
        },
        "content": {
            "open": ["<|to|>user<|say|>", "<|to|>all<|say|>"],
            "close_pattern": r"\n?<\|end\|>",
        },
        "tool_calls": {
            "open_pattern": r"<\|to\|>tools\.(?P<name>\w+).*?<\|say\|>\s*",
            "close": ["<|call|>", "<|end|>"],
            "repeats": True,
            "content": "json",
            "transform": FUNCTION,
        },
    },
}
# Command: all calls in one list, with other keys
LIST: dict[str, object] = {
    "start_anchor": ["[BOT]", "[/RESULT]"],
    "fields": {
        "content": {"open": "[SAY]", "close": "[/SAY]", "content": "text"},
        "thinking": {"open_pattern": r"\s*\[THINK\]\n*", "close": "[/THINK]", "content": "text"},
        "tool_calls": {
            "open": "[DO]",
            "close": "[/DO]",
            "content": "json",
            "transform_each": True,
            "transform": {
                "type": "function",
                "function": {"name": "{tool}", "arguments": "{input}"},
            },
        },
    },
}

PARIS = '{"city": "Paris"}'
PARIS_CALL = ("get_weather", PARIS)
MARKERS = '{"q": "</call><|call|>[/DO]", "w": "a\\\\\\"b"}'
TAGGED = '<call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</call>'
CHANNELED = '<|to|>tools.get_weather json<|say|>{"city": "Paris"}<|call|>'
LISTED = (
    '[DO][{"id": "0", "tool": "get_weather", "input": {"city": "Paris"}}, '
    '{"tool": "ping", "input": {}}][/DO]'
)


def parser(
    template: object, prompt_text: str = "", tools: tuple[FunctionTool, ...] = TOOLS
) -> Parser:
    return TemplatedParser(read_response_template(template), tools, prompt_text)


TAG_CASES: dict[str, tuple[str, Folded]] = {
    "nothing": ("", Folded()),
    "plain text": ("Hello.", Folded("Hello.")),
    "whitespace at the ends is none of the text": ("\n\nHello,\n you. \n", Folded("Hello,\n you.")),
    "reasoning, then text": ("<think>\nhm,\n so\n</think>\n\nHello.", Folded("Hello.", "hm,\n so")),
    "reasoning, then a call": (f"<think>hm</think>\n{TAGGED}", Folded("", "hm", [PARIS_CALL])),
    "empty reasoning": ("<think>\n\n</think>\n\nHello.", Folded("Hello.")),
    "reasoning later": ("Well <think>hm</think> so", Folded("Well so", "hm")),
    "a call inside stays reasoning": (f"<think>{TAGGED}</think>", Folded("", TAGGED)),
    "two calls": (f"{TAGGED}\n{TAGGED}", Folded(calls=[PARIS_CALL] * 2)),
    "text around calls": (f"a {TAGGED}b", Folded("a b", calls=[PARIS_CALL])),
    "markers inside strings": (
        f'<call>{{"name": "f", "arguments": {MARKERS}}}</call>',
        Folded(calls=[("f", MARKERS)]),
    ),
    "a call without an end": (TAGGED.removesuffix("\n</call>"), Folded(calls=[PARIS_CALL])),
    "a call that is none": ("<call>get_weather</call> so", Folded("<call>get_weather</call> so")),
    "a call that is none after text": ("a <call>b", Folded("a <call>b")),
    "the end mark": ("Hello.<|im_end|>\n", Folded("Hello.")),
    "both end marks": ("Hello.\n<|im_end|>\n<|endoftext|>", Folded("Hello.")),
    "a lone mark that closes": ("a</think>b", Folded("a</think>b")),
}
CHANNEL_CASES: dict[str, tuple[str, Folded]] = {
    "an answer": ("<|to|>user<|say|>Hello.\n<|end|>", Folded("Hello.")),
    "its other mark": ("<|to|>all<|say|>Hello.", Folded("Hello.")),
    "reasoning, then an answer": (
        "<|to|>self<|say|>hm<|end|><|start|>model<|to|>user<|say|>Hello.<|end|>",
        Folded("Hello.", "hm"),
    ),
    "reasoning twice is joined": (
        "<|to|>self<|say|>hm<|end|><|start|>model<|to|>self<|say|>so<|end|>",
        Folded("", "hm\nso"),
    ),
    "two answers are apart": ("<|to|>user<|say|>a<|end|><|to|>user<|say|>b", Folded("a\n\nb")),
    "one call": (CHANNELED, Folded(calls=[PARIS_CALL])),
    "a name with a dash": (
        "<|to|>tools.get-it_2<|say|>\n{}<|call|>",
        Folded(calls=[("get-it_2", "{}")]),
    ),
    "two calls, another end": (
        f"{CHANNELED}<|start|>model<|to|>tools.ping<|say|><|end|>",
        Folded(calls=[PARIS_CALL, ("ping", "{}")]),
    ),
    "markers inside strings": (
        f"<|to|>tools.f<|say|>{MARKERS}<|call|>",
        Folded(calls=[("f", MARKERS)]),
    ),
    "no name": ("<|to|>tools.<|say|>{}", Folded("<|to|>tools.<|say|>{}")),
    "arguments that are none": (
        "<|to|>tools.f<|say|>[1]<|call|>",
        Folded("<|to|>tools.f<|say|>[1]<|call|>"),
    ),
    "cut in the mark": ("<|to|>tools.f js", Folded("<|to|>tools.f js")),
    "what no field claims": ("hm <|to|>user<|say|>a<|end|> so", Folded("hm\n\na\n\nso")),
}
LIST_CASES: dict[str, tuple[str, Folded]] = {
    "an answer": ("[SAY]Hello.[/SAY]", Folded("Hello.")),
    "everything": (f"[THINK]\nhm[/THINK]{LISTED}", Folded("", "hm", [PARIS_CALL, ("ping", "{}")])),
    "an answer before the calls": (
        f"[SAY]I look.[/SAY]\n{LISTED}",
        Folded("I look.", "", [PARIS_CALL, ("ping", "{}")]),
    ),
    "one object instead of a list": (
        '[DO]{"tool": "ping", "input": {}}[/DO]',
        Folded(calls=[("ping", "{}")]),
    ),
    "keys of another format": (
        '[DO][{"name": "ping", "arguments": {}}][/DO]',
        Folded('[DO][{"name": "ping", "arguments": {}}][/DO]'),
    ),
    "an empty list": ("[DO][][/DO]", Folded("[DO][][/DO]")),
    "cut in the arguments": (
        '[DO][{"tool": "f", "input": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "cut after the name": ('[DO][{"tool": "f", "inp', Folded(calls=[("f", "")])),
    "cut in a mark": ("[SAY]Hello.[/SA", Folded("Hello.[/SA")),
    "lone marks that close": ("[/THINK]a[/SAY]", Folded("a")),
}
TEMPLATES = {"tags": TAGS, "channels": CHANNELS, "list": LIST}
CASES = [
    pytest.param(template, *case, id=f"{kind}: {name}")
    for kind, (template, cases) in {
        "tags": (TAGS, TAG_CASES),
        "channels": (CHANNELS, CHANNEL_CASES),
        "list": (LIST, LIST_CASES),
    }.items()
    for name, case in cases.items()
]


@pytest.mark.parametrize(("template", "text", "expected"), CASES)
def test_answers_are_parsed(template: object, text: str, expected: Folded) -> None:
    check_parser(lambda: parser(template), text, expected)


def test_the_whitespace_before_a_cut_is_text() -> None:
    check_parser(lambda: parser(TAGS), "<think>\nhm\n", Folded("", "hm\n"), FinishReason.LENGTH)
    check_parser(
        lambda: parser(TAGS),
        f"\na\n{TAGGED}\n",
        Folded("a\n", calls=[PARIS_CALL]),
        FinishReason.LENGTH,
    )


GOOD = [
    (TAGS, f"<think>\nhm\n</think>\n\nI look.\n{TAGGED}\n{TAGGED}"),
    (
        CHANNELS,
        f"<|to|>self<|say|>hm<|end|><|start|>model{CHANNELED}<|start|>model<|to|>user<|say|>Hello.<|end|>",
    ),
    (LIST, f"[THINK]\nhm[/THINK]{LISTED}[SAY]Hello.[/SAY]"),
]


@pytest.mark.parametrize(("template", "text"), GOOD, ids=TEMPLATES)
def test_truncated_texts_are_parsed(template: object, text: str) -> None:
    check_truncation(lambda: parser(template), text)


def test_a_mark_that_is_cut_after_a_call_is_no_content() -> None:
    check_cut_marks(lambda: parser(TAGS), f"{TAGGED}\n{TAGGED}")


FRAGMENTS = [
    *(
        "<think>",
        "</think>",
        "<call>",
        "</call>",
        "<|im_end|>",
        "<call",
        "<|to|>",
        "<|start|>",
        "<|start|>model",
        "<|",
    ),
    *(
        "<|to|>self<|say|>",
        "<|to|>user<|say|>",
        "<|to|>tools.",
        "tools.",
        "<|say|>",
        "<|end|>",
        "<|call|>",
        "[SAY]",
    ),
    *(
        "[/SAY]",
        "[THINK]",
        "[/THINK]",
        "[DO]",
        "[/DO]",
        "[",
        "]",
        "\n",
        " ",
        "{",
        "}",
        '"',
        ",",
        ":",
        "\\",
    ),
    *(
        '{"name": "f", "arguments": ',
        '{"tool": "f", "input": ',
        '{"a": "',
        '"}',
        "null",
        "<|to|>tools.f json<|say|>{",
    ),
]


@pytest.mark.parametrize("kind", TEMPLATES)
def test_any_text(kind: str, before_release: bool) -> None:
    header = r"<\|to\|>tools\.\w+(.*?)<\|say\|>" if kind == "channels" else None
    check_any_text(
        lambda: parser(TEMPLATES[kind]), FRAGMENTS, header=header, is_release=before_release
    )


@pytest.mark.parametrize(
    ("template", "prompt_text", "text", "expected"),
    [
        (
            TAGS,
            "<think>no<|im_start|>assistant\n<think>\n",
            "\nhm\n</think>\n\nHello.",
            Folded("Hello.", "hm"),
        ),
        (TAGS, "<|im_start|>assistant\n<think>\n\n</think>\n\n", "\nHello.", Folded("Hello.")),
        (
            TAGS,
            "<|im_start|>assistant\n<think>\n<|im_start|>assistant\n",
            "Hello.",
            Folded("Hello."),
        ),
        (TAGS, "no anchor <think>", "Hello.", Folded("Hello.")),
        (TAGS, f"<|im_start|>assistant\n{TAGGED}", TAGGED, Folded(calls=[PARIS_CALL])),
        (TAGS, "<|im_start|>assistant\nIt is", " so.", Folded(" so.")),
        (TAGS, "<|im_start|>assistant\nIt is \n", "so.", Folded("so.")),
        (TAGS, "<|im_start|>assistant\nIt is <", " 3.", Folded(" 3.")),
        (
            TAGS,
            "<|im_start|>assistant\nIt is <ca",
            f"{TAGGED[3:]} so",
            Folded(" so", calls=[PARIS_CALL]),
        ),
        (TAGS, "<|im_start|>assistant\n<think>hm</thi", "nk>Hello.", Folded("Hello.")),
        (TAGS, "<|im_start|>assistant\n<think>hm</thi", "n.", Folded("", "n.")),
        (TAGS, "<|im_start|>assistant\nIt <call>", "it.", Folded("it.")),
        (CHANNELS, "<|start|>model<|to|>", "self<|say|>hm<|end|>", Folded("", "hm")),
        (LIST, "[BOT][THINK]x[/THINK][RESULT]1[/RESULT][SAY]", "Hello.[/SAY]", Folded("Hello.")),
    ],
)
def test_a_part_begun_by_the_prompt_continues(
    template: object, prompt_text: str, text: str, expected: Folded
) -> None:
    check_parser(lambda: parser(template, prompt_text), text, expected)


def test_without_tools_nothing_is_a_call() -> None:
    check_parser(lambda: parser(TAGS, tools=()), f"<think>hm</think>{TAGGED}", Folded(TAGGED, "hm"))


def test_text_that_is_not_stripped_stays_as_it_is() -> None:
    content = {"open": "[SAY]", "close": "[/SAY]", "content_args": {"strip": False}}
    template = {"start_anchor": "[BOT]", "fields": {"content": content}}
    check_parser(lambda: parser(template), "[SAY] a \n[/SAY]", Folded(" a \n"))


SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 12}},
    "required": ["text"],
    "additionalProperties": False,
}
FORCED = (FunctionTool("get-weather_2", parameters=SCHEMA), FunctionTool("ping"))


def forced(calls: Calls) -> Format:
    first, second = map(calls.call_format, FORCED)
    texts = [calls.before, first, calls.separator, second, calls.after]
    elements = [
        {"type": "const_string", "value": item} if isinstance(item, str) else item for item in texts
    ]
    return {"type": "sequence", "elements": elements}


def family(template: object) -> Family:
    return make_templated_family(read_response_template(template))


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_forced_calls_are_read(template: object) -> None:
    calls = family(template).calls
    assert calls is not None
    session, random = started(forced(calls)), np.random.default_rng(0)
    texts = [text for _ in range(8) if (text := random_walk(session, random))]
    assert texts
    for text in texts:
        folded = parse(lambda: OutputFormat(family(template)).make_parser(FORCED, ""), list(text))
        given, nothing = (json.loads(arguments) for _, arguments in folded.calls)
        assert (folded.content, [name for name, _ in folded.calls]) == (
            "",
            ["get-weather_2", "ping"],
        ), text
        assert given.keys() == {"text"} and nothing == {}, text
        assert text.startswith(calls.trigger)


def test_marks_that_may_be_special_tokens_are_shown() -> None:
    described = family(CHANNELS)
    shown = OutputFormat(described, described).special_tokens(with_calls=False)
    assert {"<|start|>", "<|to|>", "<|say|>", "<|end|>", "<|call|>"} <= shown


def test_reasoning_has_the_marks_of_its_field() -> None:
    marks = family(TAGS).reasoning
    assert marks is not None and (marks.start, marks.end) == ("<think>", "</think>")
