"""An answer that consists of JSON calls, without a family's marks, is read as calls."""

from collections.abc import Callable

import pytest

from ouzel.parsers.bare_calls import BareCalls
from ouzel.parsers.base import ContentDelta, Delta, Family, Parser, ToolCallDelta
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool, TextGrammar
from tests.parsers.cutting import Folded, check_any_text, check_parser, parse

CITY: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
    "required": ["city"],
}
TOOLS = (
    FunctionTool("get_weather", parameters=CITY),
    FunctionTool("f", parameters={"type": "object"}),
)
PING = FunctionTool("ping")
PARIS, ROME = '{"city": "Paris"}', '{"city": "Rome"}'
WEATHER = f'{{"name": "get_weather", "arguments": {PARIS}}}'
ROME_WEATHER = f'{{"name": "get_weather", "arguments": {ROME}}}'
INDENTED = '{\n  "city": "Paris",\n  "unit": "celsius"\n}'
PARIS_CALL, ROME_CALL = ("get_weather", PARIS), ("get_weather", ROME)


def parser(
    *tools: FunctionTool,
    family: Family = HERMES,
    is_parallel: bool = True,
    guides_all: bool = False,
) -> Callable[[], Parser]:
    offered = tools or (*TOOLS, PING)
    calls = BareCalls(tools=offered, is_parallel=is_parallel, guides_all=guides_all)
    output_format = OutputFormat(
        family if family.calls else None, family if family.reasoning else None
    )
    return lambda: output_format.make_parser(offered, "", bare_calls=calls)


CALLS: dict[str, tuple[str, Folded]] = {
    "bare": (WEATHER, Folded(calls=[PARIS_CALL])),
    "blanks around": (f"\n\n {WEATHER} \n", Folded(calls=[PARIS_CALL])),
    "in a fence": (f"```json\n{WEATHER}\n```", Folded(calls=[PARIS_CALL])),
    "in a fence of no language": (f"```\n{WEATHER}\n```\n", Folded(calls=[PARIS_CALL])),
    "in a fence that stays open": (f"```json\n{WEATHER}\n", Folded(calls=[PARIS_CALL])),
    "over lines": (
        f'```json\n{{\n  "name": "get_weather",\n  "arguments": {INDENTED}\n}}\n```',
        Folded(calls=[("get_weather", INDENTED)]),
    ),
    "parameters": (WEATHER.replace("arguments", "parameters"), Folded(calls=[PARIS_CALL])),
    "arguments first": (
        f'{{"arguments": {PARIS}, "name": "get_weather"}}',
        Folded(calls=[PARIS_CALL]),
    ),
    "a type and an id": (
        '{"type": "function", "id": "call_1", ' + WEATHER[1:],
        Folded(calls=[PARIS_CALL]),
    ),
    "arguments in a string": (
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}',
        Folded(calls=[PARIS_CALL]),
    ),
    "null for no arguments": (
        '{"name": "ping", "arguments": null}',
        Folded(calls=[("ping", "{}")]),
    ),
    "an array": (f"[{WEATHER}, {ROME_WEATHER}]", Folded(calls=[PARIS_CALL, ROME_CALL])),
    "an array of one": (f"[ {WEATHER} ]", Folded(calls=[PARIS_CALL])),
    "two in a row": (f"{WEATHER}\n{ROME_WEATHER}", Folded(calls=[PARIS_CALL, ROME_CALL])),
    "two in a fence": (
        f"```json\n{WEATHER}\n{ROME_WEATHER}\n```",
        Folded(calls=[PARIS_CALL, ROME_CALL]),
    ),
    "braces and a fence in a string": (
        '{"name": "f", "arguments": {"a": "}{ ```\\n\\"", "b": [{}]}}',
        Folded(calls=[("f", '{"a": "}{ ```\\n\\"", "b": [{}]}')]),
    ),
    "after reasoning": (f"<think>\nhm\n</think>\n\n{WEATHER}", Folded("", "hm", [PARIS_CALL])),
}

CONTENT = {
    "prose": "It is sunny.",
    "nothing": "",
    "blanks": " \n",
    "a call in prose": f"I call {WEATHER}",
    "prose after it": f"{WEATHER}\nThat is the call.",
    "prose after its fence": f"```json\n{WEATHER}\n```\nDone.",
    "two fences": f"```json\n{WEATHER}\n```\n```json\n{WEATHER}\n```",
    "another language": f"```python\n{WEATHER}\n```",
    "a fence in the line": f"```json5\n{WEATHER}\n```",
    "code": "```json\nnull\n```",
    "another object": '{"city": "Paris"}',
    "a person": '{"name": "Ann", "arguments": {}}',
    "no tool": '{"name": "get_weather2", "arguments": {"city": "Paris"}}',
    "the beginning of a tool's name": '{"name": "get", "arguments": {}}',
    "a name alone": '{"name": "ping"}',
    "arguments alone": '{"arguments": {"city": "Paris"}}',
    "the description of a tool": (
        '{"name": "get_weather", "parameters": {"type": "object", "properties": {}}}'
    ),
    "another member": f'{{"name": "get_weather", "description": "x", "arguments": {PARIS}}}',
    "two names": f'{{"name": "f", "name": "get_weather", "arguments": {PARIS}}}',
    "two arguments": f'{{"name": "get_weather", "arguments": {PARIS}, "parameters": {PARIS}}}',
    "another type": '{"type": "object", ' + WEATHER[1:],
    "a number for an id": '{"id": 1, ' + WEATHER[1:],
    "a required argument is missing": '{"name": "get_weather", "arguments": {"unit": "celsius"}}',
    "an argument of another type": '{"name": "get_weather", "arguments": {"city": 1}}',
    "an argument of no listed value": (
        '{"name": "get_weather", "arguments": {"city": "Paris", "unit": "kelvin"}}'
    ),
    "arguments where there are none": '{"name": "ping", "arguments": {"a": 1}}',
    "arguments that are no object": '{"name": "f", "arguments": [1]}',
    "text for arguments": '{"name": "f", "arguments": "Paris"}',
    "arguments that are no JSON": '{"name": "f", "arguments": {"a": nope}}',
    "a line break in a string": '{"name": "f", "arguments": {"a": "x\ny"}}',
    "a missing brace": WEATHER[:-1],
    "a brace too many": WEATHER + "}",
    "a comma too many": WEATHER[:-1] + ",}",
    "an open array": f"[{WEATHER}",
    "an empty array": "[]",
    "an array of something else": f'[{WEATHER}, {{"a": 1}}]',
    "a call, then another object": f'{WEATHER}\n{{"a": 1}}',
    "commas between without an array": f"{WEATHER}, {WEATHER}",
}


@pytest.mark.parametrize(("text", "expected"), CALLS.values(), ids=CALLS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(parser(), text, expected)


@pytest.mark.parametrize("text", CONTENT.values(), ids=CONTENT)
def test_content_is_parsed(text: str) -> None:
    check_parser(parser(), text, Folded(text))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.names[0])
def test_every_family_reads_a_bare_call_and_leaves_prose(family: Family) -> None:
    check_parser(parser(family=family), WEATHER, Folded(calls=[PARIS_CALL]))
    check_parser(parser(family=family), f"```json\n{WEATHER}\n```", Folded(calls=[PARIS_CALL]))
    check_parser(parser(family=family), "It is sunny.", Folded("It is sunny."))


def test_a_call_with_its_marks_stays_one() -> None:
    check_parser(parser(), f"<tool_call>\n{WEATHER}\n</tool_call>", Folded(calls=[PARIS_CALL]))


MARKED = f"<tool_call>\n{WEATHER}\n</tool_call>"
FENCED_CALLS: dict[str, tuple[str, Folded]] = {
    "one": (f"```json\n{MARKED}\n```\n", Folded(calls=[PARIS_CALL])),
    "two": (f"```\n{MARKED}\n{MARKED}\n```", Folded(calls=[PARIS_CALL] * 2)),
    "an open fence": (f"```json\n{MARKED}", Folded(calls=[PARIS_CALL])),
    "half a mark at the end": (
        f"```json\n{MARKED}\n``",
        Folded("```json\n\n``", calls=[PARIS_CALL]),
    ),
    "text after the fence": (
        f"```json\n{MARKED}\n```\nDone.",
        Folded("```json\n\n```\nDone.", calls=[PARIS_CALL]),
    ),
    "text in the fence": (
        f"```json\nx {MARKED}\n```",
        Folded("```json\nx \n```", calls=[PARIS_CALL]),
    ),
    "another language": (f"```xml\n{MARKED}\n```", Folded("```xml\n\n```", calls=[PARIS_CALL])),
}


@pytest.mark.parametrize(("text", "expected"), FENCED_CALLS.values(), ids=FENCED_CALLS)
def test_a_fence_around_calls_with_marks_is_no_content(text: str, expected: Folded) -> None:
    check_parser(parser(), text, expected)


def test_a_bare_object_before_a_call_with_marks_is_content() -> None:
    marked = f"<tool_call>\n{ROME_WEATHER}\n</tool_call>"

    check_parser(parser(), f"{WEATHER}\n{marked}", Folded(f"{WEATHER}\n", calls=[ROME_CALL]))


def test_an_answer_that_was_cut_off_is_a_call_if_it_is_complete() -> None:
    check_parser(parser(), WEATHER, Folded(calls=[PARIS_CALL]), FinishReason.LENGTH)
    check_parser(parser(), WEATHER[:-3], Folded(WEATHER[:-3]), FinishReason.LENGTH)


def test_without_parallel_calls_several_are_none() -> None:
    make_parser = parser(is_parallel=False)

    check_parser(make_parser, WEATHER, Folded(calls=[PARIS_CALL]))
    for text in (f"[{WEATHER}, {WEATHER}]", f"{WEATHER}\n{WEATHER}"):
        check_parser(make_parser, text, Folded(text))


def test_arguments_that_have_to_obey_are_called_only_where_it_is_sure_that_they_do() -> None:
    sure: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}}
    unsure: dict[str, object] = {
        "type": "object",
        "properties": {"city": {"type": "string", "pattern": "^P"}},
    }
    for parameters, is_called in ((sure, True), (unsure, False)):
        expected = Folded(calls=[PARIS_CALL]) if is_called else Folded(WEATHER)
        check_parser(
            parser(FunctionTool("get_weather", parameters=parameters, strict=True)),
            WEATHER,
            expected,
        )
        check_parser(
            parser(FunctionTool("get_weather", parameters=parameters), guides_all=True),
            WEATHER,
            expected,
        )
        check_parser(
            parser(FunctionTool("get_weather", parameters=parameters)),
            WEATHER,
            Folded(calls=[PARIS_CALL]),
        )


def test_a_strict_tool_takes_no_further_arguments() -> None:
    tool = FunctionTool("get_weather", parameters=CITY, strict=True)
    text = '{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}'

    check_parser(parser(tool), text, Folded(text))


def test_a_custom_tool_is_called_with_its_text() -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    tool = FunctionTool("patch", parameters=schema, is_custom=True)
    text = '{"name": "patch", "arguments": {"input": "a\\nb"}}'

    check_parser(parser(tool), text, Folded(calls=[("patch", "a\nb")]))


def test_a_custom_tool_with_a_grammar_is_not_called_bare() -> None:
    grammar = TextGrammar("regex", "[ab]+")
    tool = FunctionTool(
        "patch", parameters={"type": "object"}, is_custom=True, text_grammar=grammar
    )
    text = '{"name": "patch", "arguments": {"input": "ab"}}'

    check_parser(parser(tool), text, Folded(text))


def test_ids_are_those_of_the_family() -> None:
    [mistral] = [family for family in FAMILIES if "mistral" in family.names]
    made = parser(family=mistral)()
    [opened, _] = [
        delta for delta in [*made.feed(WEATHER), *made.finish(FinishReason.STOP)] if is_call(delta)
    ]

    assert isinstance(opened, ToolCallDelta)
    assert opened.id is not None
    assert len(opened.id) == 9


def is_call(delta: Delta) -> bool:
    return isinstance(delta, ToolCallDelta)


@pytest.mark.parametrize(
    ("held", "deciding"),
    [
        ("", "I"),
        ("\n", "1"),
        ("``", "x"),
        ("```", "p"),
        ("```json", "5"),
        ("{", '"x'),
        ('{"n', "u"),
        ('{"name": "get_', "s"),
        ('{"name": "get_weather", "', "d"),
        ('{"name": "get_weather", "arguments": ', "["),
        ('{"name": "get_weather", "arguments": {"city": 1', "}"),
        (f"{WEATHER}\n", "T"),
        ("[", "1"),
        ("[{", '"a"'),
    ],
)
def test_text_is_held_back_until_it_can_be_no_call(held: str, deciding: str) -> None:
    made = parser()()

    assert [delta for char in held for delta in made.feed(char)] == []
    given = made.feed(deciding)
    assert given and all(isinstance(delta, ContentDelta) for delta in given)
    assert (
        "".join(delta.text for delta in given if isinstance(delta, ContentDelta)) == held + deciding
    )


def test_an_answer_that_is_no_call_flows_on() -> None:
    made = parser()()
    made.feed('{"answer"')

    assert made.feed(": 4") == [ContentDelta(": 4")]


def test_a_call_comes_whole_at_the_end_and_no_content_before_it() -> None:
    made = parser()()

    assert [delta for char in WEATHER + "\n" for delta in made.feed(char)] == []
    assert all(map(is_call, made.finish(FinishReason.STOP)))


def test_without_bare_calls_the_text_is_content() -> None:
    made = OutputFormat(HERMES, HERMES)

    assert parse(lambda: made.make_parser(TOOLS, ""), [WEATHER]) == Folded(WEATHER)


FRAGMENTS = [
    *(
        "```",
        "```json",
        "\n",
        " ",
        "{",
        "}",
        "[",
        "]",
        '"',
        ",",
        ":",
        "\\",
        "<tool_call>",
        "</tool_call>",
        "<think>",
    ),
    *(
        '{"name": "f", "arguments": ',
        '{"a": "',
        '"}',
        '"name"',
        '"arguments"',
        '"id": "x"',
        "null",
        "1",
        WEATHER,
    ),
    *('{"name": "ping", "arguments": {}}', '"{', "</think>"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(parser(), FRAGMENTS, is_release=before_release)
