"""The parser reads the output of Llama 3.1 to 3.3."""

import pytest

from ouzel.parsers.families.llama3_json import LLAMA3_JSON, Llama3JsonParser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

TOOLS = (
    FunctionTool("get_weather", parameters={"type": "object"}),
    FunctionTool("ping"),
    FunctionTool("f"),
)
TAG = "<|python_tag|>"

PARIS = '{"city": "Paris"}'
WEATHER = '{"name": "get_weather", "parameters": {"city": "Paris"}}'
PARIS_CALL = ("get_weather", PARIS)
NESTED = (
    '{"a": {"b": [{"c": [1, {"d": "}"}]}]}, "e": -7, "f": 123456789012345678901234567890, "g": '
    "-1.5E-300}"
)
MARKERS = '{"q": "<|python_tag|>{\\"name\\": \\"ping\\"}; x", "w": "a\\\\\\"};{", "n": "\\n{"}'


def f(arguments: str) -> str:
    return f'{{"name": "f", "parameters": {arguments}}}'


GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.\n\nBye.\n", Folded("Hello.\n\nBye.\n")),
    "nothing": ("", Folded()),
    "whitespace alone": (" \n ", Folded(" \n ")),
    "one call": (WEATHER, Folded(calls=[PARIS_CALL])),
    "one call with the tag": (TAG + WEATHER, Folded(calls=[PARIS_CALL])),
    "blanks around": (f"\n\n {TAG} {WEATHER} \n", Folded(calls=[PARIS_CALL])),
    "two calls, semicolon": (f"{WEATHER}; {WEATHER}", Folded(calls=[PARIS_CALL] * 2)),
    "two calls, line": (f"{TAG}{WEATHER}\n{WEATHER}", Folded(calls=[PARIS_CALL] * 2)),
    "two calls, nothing between": (WEATHER + WEATHER, Folded(calls=[PARIS_CALL] * 2)),
    "two calls, tags": (f"{TAG}{WEATHER}{TAG}{WEATHER}", Folded(calls=[PARIS_CALL] * 2)),
    "three calls, mixed": (
        f"{WEATHER};{WEATHER}\n\n{TAG}{WEATHER};",
        Folded(calls=[PARIS_CALL] * 3),
    ),
    "a list": (f"[{WEATHER}, {WEATHER}]", Folded(calls=[PARIS_CALL] * 2)),
    "text before the tag": (f"I look. {TAG}{WEATHER}", Folded("I look. ", calls=[PARIS_CALL])),
    "text before, no tag": (f"I look.\n\n{WEATHER}", Folded("I look.\n\n", calls=[PARIS_CALL])),
    "text after": (f"{WEATHER}\nDone.\n", Folded("\nDone.\n", calls=[PARIS_CALL])),
    "text between": (f"{WEATHER}\nand\n{WEATHER}", Folded("\nand\n", calls=[PARIS_CALL] * 2)),
    "nested and huge": (f(NESTED), Folded(calls=[("f", NESTED)])),
    "markers and semicolons inside strings": (
        f(MARKERS) + "; " + WEATHER,
        Folded(calls=[("f", MARKERS), PARIS_CALL]),
    ),
    "unicode": (f('{"é😀": "\\u00e9 中"}'), Folded(calls=[("f", '{"é😀": "\\u00e9 中"}')])),
    "empty parameters": ('{"name": "ping", "parameters": {}}', Folded(calls=[("ping", "{}")])),
    "null parameters": ('{"name": "ping", "parameters": null}', Folded(calls=[("ping", "{}")])),
    "no parameters key, with the tag": (TAG + '{"name": "ping"}', Folded(calls=[("ping", "{}")])),
    "arguments instead of parameters": (
        WEATHER.replace("parameters", "arguments"),
        Folded(calls=[PARIS_CALL]),
    ),
    "a type first": ('{"type": "function", ' + WEATHER[1:], Folded(calls=[PARIS_CALL])),
    "parameters before the name": (
        f'{{"parameters": {PARIS}, "name": "f"}}',
        Folded(calls=[("f", PARIS)]),
    ),
    "unknown tool, with the tag": (
        TAG + '{"name": "no", "parameters": {}}',
        Folded(calls=[("no", "{}")]),
    ),
    "spacing of the model is kept": (
        '{ "name" :"f",\n"parameters":{ "a" :1 ,\n"b":[ ]} }',
        Folded(calls=[("f", '{ "a" :1 ,\n"b":[ ]}')]),
    ),
}

ANSWERS = {
    "an object": '{"city": "Paris", "name": "get_weather", "parameters": {}}',
    "an object over lines": (
        '{\n  "a": {\n    "name": "Ann",\n    "parameters": {}\n  },\n  "b": [\n    {}\n  ]\n}\n'
    ),
    "a list": '[{"name": "Ann", "age": 3}, {"name": "ping"}]',
    "a person": '{"name": "Ann", "parameters": {"height": 1}}',
    "a name alone": '{"name": "ping"}',
    "the description of a tool": (
        '{"name": "ping", "description": "Pings.", "parameters": {"type": "object"}}'
    ),
    "a call in prose": f"Write {WEATHER} for it.",
    "an unknown tool": '{"name": "nobody", "parameters": {}}',
    "parameters that are no object": f("[1]"),
    "code after the tag": TAG + 'print("{x}")\nprint(1)',
    "a built-in tool": TAG + 'brave_search.call(query="x")',
    "cut in the name": '{"name": "get_wea',
    "cut after the name": '{"name": "get_weather", "param',
    "cut in the tag": "a <|python_",
}

OTHERS: dict[str, tuple[str, Folded]] = {
    **{f"answer: {name}": (text, Folded(text)) for name, text in ANSWERS.items()},
    "cut in the arguments": (
        '{"name": "f", "parameters": {"a": "x',
        Folded(calls=[("f", '{"a": "x')]),
    ),
    "one missing brace": ('{"name": "f", "parameters": {}', Folded(calls=[("f", "{}")])),
    "one brace too many": ('{"name": "f", "parameters": {}}}', Folded(calls=[("f", "{}")])),
    "an answer after a call": (f'{WEATHER}\n{{"a": 1}}', Folded('\n{"a": 1}', calls=[PARIS_CALL])),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: Llama3JsonParser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: Llama3JsonParser(TOOLS), text)


def test_an_answer_in_json_is_not_held_back() -> None:
    parser = Llama3JsonParser(TOOLS)
    assert parser.feed('{"answer": "Once upon a ti')


FRAGMENTS = [
    *(TAG, ";", "\n", "\n{", " ", "{", "}", "[", "]", '"', ",", ":", "\\", "<|py"),
    *(
        '{"name": "f", "parameters": ',
        '{"a": "',
        '"}',
        '"name"',
        '"parameters"',
        '{"name": "f"',
        "null",
        "1",
        WEATHER,
    ),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(lambda: Llama3JsonParser(TOOLS), FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    assert parse(
        lambda: OutputFormat(calls=LLAMA3_JSON).make_parser((), ""), [TAG + WEATHER]
    ) == Folded(TAG + WEATHER)


def test_the_template_chooses() -> None:
    assert choose_output_format('"<|python_tag|>" + tool_call.name').calls is LLAMA3_JSON
