"""The parser reads the messages and calls of Muse Glimmer."""

import pytest

from ouzel.parsers.base import Parser, ReasoningStage
from ouzel.parsers.families.muse_glimmer import MUSE_GLIMMER, MuseGlimmerParser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = (
    FunctionTool("get_weather", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)
PROMPT = "<|start|>user<|message|>Hi<|eot|><|start|>assistant"
NEXT = "<|eom|><|start|>assistant"


def call(*params: tuple[str, str], name: str = "get_weather") -> str:
    lines = [f'<atem:parameter name="{key}">{value}</atem:parameter>\n' for key, value in params]
    return f'<atem:invoke name="{name}">\n{"".join(lines)}</atem:invoke>'


def block(*calls: str) -> str:
    return "\n".join(["<atem:function_calls>", *calls, "</atem:function_calls>"])


def message(text: str, to: str = "user") -> str:
    return f" to={to}<|message|>{text}"


PARIS, PARIS_CALL = block(call(("city", "Paris"))), ("get_weather", '{"city": "Paris"}')
PING, PING_CALL = block(call(name="ping")), ("ping", "{}")
THOUGHT = message("hm", "self")
GOOD: dict[str, tuple[str, Folded]] = {
    "an answer": (message("Hello.<|eot|>"), Folded("Hello.")),
    "reasoning, answer": (f"{THOUGHT}{NEXT}{message('Hi')}<|eot|>", Folded("Hi", "hm")),
    "reasoning, call": (
        f"{THOUGHT}{NEXT}{message(PARIS, 'get_weather')}<|eot|>",
        Folded("", "hm", [PARIS_CALL]),
    ),
    "a call among text": (message(f"Look: {PARIS}"), Folded("Look: ", calls=[PARIS_CALL])),
    "two calls in a block": (
        message(block(call(("days", "3")), call(name="ping"))),
        Folded(calls=[("get_weather", '{"days": 3}'), PING_CALL]),
    ),
    "two messages with calls": (
        f"{message(PARIS, 'get_weather')}{NEXT}{message(PING, 'ping')}<|eom|>",
        Folded(calls=[PARIS_CALL, PING_CALL]),
    ),
    "thoughts between calls": (
        f"{THOUGHT}{NEXT}{message(PING, 'ping')}{NEXT}{THOUGHT}",
        Folded("", "hm\n\nhm", [PING_CALL]),
    ),
    "two answers": (f"{message('a')}{NEXT}{message('b')}<|eot|>", Folded("a\n\nb")),
    "a forced call after reasoning": (
        f"{THOUGHT}{NEXT}{PARIS}",
        Folded("", "hm", [PARIS_CALL]),
    ),
    "a doubled name": (
        message(block(call(name="ping.ping")), "ping"),
        Folded(calls=[PING_CALL]),
    ),
    "a call in reasoning": (message(PING, "self"), Folded("", PING)),
}
OTHERS: dict[str, tuple[str, Folded]] = {
    "no header": ("Hello.", Folded("Hello.")),
    "a call without a header": (PARIS, Folded(calls=[PARIS_CALL])),
    "a header without a recipient": ("<|message|>Hello.", Folded("Hello.")),
    "a block without a call": (
        message("<atem:function_calls> x"),
        Folded("<atem:function_calls> x"),
    ),
}


def make() -> Parser:
    return MuseGlimmerParser(TOOLS, PROMPT)


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_messages_are_parsed(text: str, expected: Folded) -> None:
    check_parser(make, text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(make, text)


def test_a_truncated_call_is_kept_without_marks() -> None:
    text = message('<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:para', "x")
    check_parser(make, text, Folded(calls=[("get_weather", "")]), FinishReason.LENGTH)


def test_a_continued_answer_is_inside_a_message() -> None:
    prompt = PROMPT + message("Once", "self")
    text = f" upon{NEXT}{message('The end')}"
    check_parser(lambda: MuseGlimmerParser(TOOLS, prompt), text, Folded("The end", " upon"))
    marks = MUSE_GLIMMER.reasoning
    assert marks is not None and marks.own_stage is not None
    prompts = (PROMPT, prompt, PROMPT + message("Once"))
    assert [marks.own_stage(each) for each in prompts] == [
        ReasoningStage.BEFORE,
        ReasoningStage.OPEN,
        ReasoningStage.OVER,
    ]


FRAGMENTS = [
    *(" to=self<|message|>", " to=user<|message|>", "<|start|>assistant", "<|eom|>", "<|eot|>"),
    *("<atem:function_calls>", "</atem:function_calls>", '<atem:invoke name="ping">', "\n", " "),
    *("</atem:invoke>", '<atem:parameter name="city">', "</atem:parameter>", "5", "to=", "<|"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(make, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    output_format = OutputFormat(MUSE_GLIMMER, MUSE_GLIMMER)
    texts = [f"{THOUGHT}{NEXT}{message(PARIS)}<|eot|>"]
    assert parse(lambda: output_format.make_parser((), PROMPT), texts) == Folded(PARIS, "hm")


def test_the_template_chooses() -> None:
    template = "<|start|><|message|> <atem:function_calls> <|eom|> <|eot|> to=self"
    assert choose_output_format(template) == OutputFormat(MUSE_GLIMMER, MUSE_GLIMMER)
