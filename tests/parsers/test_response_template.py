"""A model's description of its own format is read as far as supported, or refused."""

import re
from typing import Any  # a description is JSON of any shape

import pytest

from ouzel.parsers.mark_patterns import Gap, Mark, PatternError, read_patterns
from ouzel.parsers.response_template import (
    CallsField,
    ResponseTemplate,
    TextField,
    UnreadableTemplate,
    read_response_template,
)

Json = dict[str, Any]
CALLS: Json = {
    "open": "<call>",
    "close": "</call>",
    "content": "json",
    "transform": {"type": "function", "function": "{content}"},
}
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THINKING: Json = {"open": "<think>", "close": "</think>"}


def template(anchor: object = "<bot>", **fields: Json) -> Json:
    return {"start_anchor": anchor, "fields": fields}


def calls(**changes: object) -> Json:
    return template(tool_calls=CALLS | changes)


def test_a_description() -> None:
    described = template(
        ["<bot>", "<tool>"],
        thinking=THINKING,
        tool_calls=CALLS | {"repeats": True},
        content={"close": ["<e>", "<f>"]},
    )
    assert read_response_template(
        described | {"version": 1, "defaults": {"role": "assistant"}}
    ) == ResponseTemplate(
        anchors=("<bot>", "<tool>"),
        content=TextField(closes=(Mark("<e>"), Mark("<f>"))),
        reasoning=TextField(opens=(Mark("<think>"),), closes=(Mark("</think>"),)),
        calls=CallsField(
            opens=(Mark("<call>"),),
            closes=(Mark("</call>"),),
            name_key="name",
            arguments_key="arguments",
        ),
    )


@pytest.mark.parametrize("name", ["thinking", "reasoning_content", "reasoning"])
def test_reasoning_has_three_names(name: str) -> None:
    assert read_response_template(template(**{name: THINKING})).reasoning is not None


@pytest.mark.parametrize(
    ("changes", "keys", "is_list"),
    [
        ({}, ("name", "arguments"), False),
        (
            {
                "transform": {
                    "type": "function",
                    "function": {"name": "{content.tool}", "arguments": "{content.input}"},
                }
            },
            ("tool", "input"),
            False,
        ),
        (
            {
                "transform_each": True,
                "transform": {"type": "function", "function": {"name": "{a}", "arguments": "{b}"}},
            },
            ("a", "b"),
            True,
        ),
    ],
)
def test_a_calls_name_is_found_in_each_place(
    changes: Json, keys: tuple[str, str], is_list: bool
) -> None:
    field = read_response_template(calls(**changes)).calls
    assert field is not None
    assert ((field.name_key, field.arguments_key), field.is_list) == (keys, is_list)


def test_the_mark_may_have_the_name() -> None:
    field = CALLS | {"open_pattern": r"<call=(?P<name>\w+)>\s*", "transform": NAMED}
    del field["open"]
    read = read_response_template(template(tool_calls=field)).calls
    assert read is not None
    assert read.opens == (Mark("<call=", (Gap.NAME, ">", Gap.SPACE), "name"),)
    assert (read.name_key, read.arguments_key) == ("", "")


@pytest.mark.parametrize(
    ("pattern", "mark"),
    [
        (r"<\|a\|>\[x\]", Mark("<|a|>[x]")),
        (r"\s*</think>", Mark("</think>", has_space_before=True)),
        (r"<a>\n?\s+", Mark("<a>", (Gap.SPACE, Gap.SPACE))),
        (r"a\nb", Mark("a\nb")),
        (r"<f=(?P<tool>[\w-]+)>", Mark("<f=", (Gap.NAME, ">"), "tool")),
        (r"to=(?P<n>\w+).*?<\|m\|>", Mark("to=", (Gap.NAME, Gap.ANYTHING, "<|m|>"), "n")),
    ],
)
def test_patterns_are_parsed(pattern: str, mark: Mark) -> None:
    assert read_patterns(pattern) == (mark,)
    assert re.fullmatch(pattern.replace(r"\s+", r"\s*"), mark.spelled("ping"))


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"<a>|<b>", ["<a>", "<b>"]),
        (r"\s*(?:<\|e\|>|<\|f\|>)\s*", ["<|e|>", "<|f|>"]),
        (r"<e>\s*|$", ["<e>"]),
        (r"(?:<e>|\Z)", ["<e>"]),
        (r"(?:\n\n)?<a>", ["\n\n<a>", "<a>"]),
        (r"(?:<(?:a|b)>|c)d|e", ["<a>d", "<b>d", "cd", "e"]),
        (r"<a|<ab>", ["<a"]),
        (r"$", []),
    ],
)
def test_alternatives_are_parsed(pattern: str, texts: list[str]) -> None:
    marks = read_patterns(pattern, may_be_end=True)
    assert [mark.text for mark in marks] == texts
    assert all(re.fullmatch(pattern, text) for text in texts)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "$",
        "<a>|",
        "(?:<a>|<b>",
        "<a>)|(<b>",
        "(?:a|" * 500 + "b" + ")" * 500,
        "(?:<a>)+",
        "<(?:a|b)" + "(?:a|b)" * 20,
        r"(?:<a>)*<b>",
        r"\s*",
        r"(?:^|<think>)",
        r"(?P<name>\w+)",
        r"<a>(?P<name>\w+)(?P<more>\w+)",
        r"<a>(?P<name>\w+)b",
        r"<a>(?P<name>.*)</a>",
        r"<a>.*?",
        r"<a>.*</a>",
        r"<a>\s*\n<b>",
        r"<a[bc]>",
        r"<a>{2}",
        r"<a>+",
        r"(?=<a>)",
        r"\d<a>",
        r"<a>$",
    ],
)
def test_patterns_that_cannot_be_told_are_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^pattern "):
        read_patterns(pattern)


REFUSED: dict[str, tuple[object, str]] = {
    "no object": ("<think>", "Expected `object`"),
    "another version": (template(content={}) | {"version": 2}, "version must be 1, given 2"),
    "an unknown key": (template(content={}) | {"fallback": 1}, "unknown field `fallback`"),
    "an unknown key of a field": (template(content={"start": "<a>"}), "unknown field `start`"),
    "no anchor": ({"fields": {"content": {}}}, "start_anchor must be a text"),
    "an anchor with gaps": (
        {"fields": {"content": {}}, "start_anchor_pattern": r"<bot>\s*"},
        "start_anchor must be a text",
    ),
    "an empty mark": (template(content={"close": ""}), "content: close is empty"),
    "no mark of several": (template(content={"close": []}), "content: close is empty"),
    "a mark that is a text and a pattern": (
        calls(open_pattern="<call>"),
        "tool_calls: open must be texts or a pattern",
    ),
    "a field of no answer": (
        template(citations={}),
        "field 'citations' is not a field of an answer",
    ),
    "reasoning twice": (
        template(thinking=THINKING, reasoning=THINKING),
        "field 'reasoning' is not a field",
    ),
    "reasoning without a mark": (
        template(thinking={"close": "</think>"}),
        "reasoning needs a mark that opens",
    ),
    "reasoning without an end": (
        template(thinking={"open": "<think>"}),
        "reasoning needs a mark that opens",
    ),
    "content that is no text": (
        template(content={"content": "json"}),
        "content must be plain text",
    ),
    "content that is made of something": (
        template(content={"transform": {}}),
        "content must be plain text",
    ),
    "calls in tags": (calls(content="xml-inline"), "tool_calls are written as xml-inline"),
    "calls in lines": (calls(content="kv-lines"), "tool_calls are written as kv-lines"),
    "calls without an end": (calls(close=None), "tool_calls need an opening mark"),
    "calls without a beginning": (calls(open=None), "tool_calls need an opening mark"),
    "JSON that is none": (
        calls(content_args={"unquoted_keys": True}),
        "tool_calls: unquoted_keys of json",
    ),
    "strings in marks": (
        calls(content_args={"string_delims": [["'", "'"]]}),
        "tool_calls: string_delims of json",
    ),
    "calls as they are": (
        calls(transform=None),
        "tool_calls: transform must give a function's name",
    ),
    "a function elsewhere": (
        calls(transform={"type": "function", "function": "{content.function}"}),
        "transform must give a function",
    ),
    "a name that is none": (
        calls(transform={"type": "function", "function": {"name": "", "arguments": "{content}"}}),
        "transform must give a function",
    ),
    "a name that nothing gives": (calls(transform=NAMED), "transform must give a function"),
    "an open pattern of two kinds": (
        template(thinking={"open_pattern": "(?:^|<think>)", "close": "</think>"}),
        "thinking: open: pattern",
    ),
    "a close pattern with a gap": (
        template(content={"close_pattern": "<a>.*?<b>"}),
        "content: close_pattern",
    ),
    "one mark for two": (
        template(thinking=THINKING, content={"open": "<think>"}),
        "two regions open with '<think>'",
    ),
    "a mark that begins another": (
        template(thinking={"open_pattern": r"<t>\s*<u>", "close": "<e>"}, content={"open": "<t>"}),
        "two regions open with '<t>'",
    ),
    "whitespace of two owners": (
        template(content={"content_args": {"strip": False}, "close_pattern": r"\n?<e>"}),
        "whitespace around '<e>'",
    ),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_an_unreadable_template_is_reported(value: object, message: str) -> None:
    with pytest.raises(UnreadableTemplate, match=re.escape(message)):
        read_response_template(value)
