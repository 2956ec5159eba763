"""The parser reads the output of MiniMax-M2."""

import pytest

from ouzel.parsers.base import Parser
from ouzel.parsers.families.minimax_m2 import MINIMAX_M2, MinimaxM2Parser
from ouzel.parsers.registry import OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser, check_truncation, parse

PROPERTIES: dict[str, object] = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "list": {"type": "array"},
}
TOOLS = (
    FunctionTool("f", parameters={"type": "object", "properties": PROPERTIES}),
    FunctionTool("ping"),
)


def call(*params: tuple[str, str], name: str = "f") -> str:
    lines = [f'<parameter name="{key}">{value}</parameter>\n' for key, value in params]
    return f'<invoke name="{name}">\n{"".join(lines)}</invoke>'


def block(*calls: str) -> str:
    return "\n".join(["<minimax:tool_call>", *calls, "</minimax:tool_call>"])


PARIS, PARIS_CALL = call(("text", "Paris")), ("f", '{"text": "Paris"}')
PING, PING_CALL = call(name="ping"), ("ping", "{}")
GOOD: dict[str, tuple[str, Folded]] = {
    "plain text": ("Hello.", Folded("Hello.")),
    "nothing": ("", Folded()),
    "one call": (block(PARIS), Folded(calls=[PARIS_CALL])),
    "no parameters": (block(PING), Folded(calls=[PING_CALL])),
    "two calls in a block": (block(PARIS, PING), Folded(calls=[PARIS_CALL, PING_CALL])),
    "two blocks": (block(PARIS) + "\n" + block(PING), Folded(calls=[PARIS_CALL, PING_CALL])),
    "text before": ("Look:\n" + block(PING), Folded("Look:\n", calls=[PING_CALL])),
    "types": (
        block(call(("count", "3"), ("list", '["a", 1]'), ("text", "3"))),
        Folded(calls=[("f", '{"count": 3, "list": ["a", 1], "text": "3"}')]),
    ),
    "lines and marks in a string": (
        block(call(("text", "\n<b>\n</parameter\n"))),
        Folded(calls=[("f", '{"text": "\\n<b>\\n</parameter\\n"}')]),
    ),
    "without a block": (PARIS, Folded(calls=[PARIS_CALL])),
}
OTHERS: dict[str, tuple[str, Folded]] = {
    "a block without a call": ("<minimax:tool_call> x", Folded("<minimax:tool_call> x")),
    "no name": ('<invoke name="">', Folded('<invoke name="">')),
    "no end of the block": ("<minimax:tool_call>" + PARIS, Folded(calls=[PARIS_CALL])),
}


@pytest.mark.parametrize(("text", "expected"), (GOOD | OTHERS).values(), ids=GOOD | OTHERS)
def test_calls_are_parsed(text: str, expected: Folded) -> None:
    check_parser(lambda: MinimaxM2Parser(TOOLS), text, expected)


@pytest.mark.parametrize("text", [text for text, _ in GOOD.values()], ids=GOOD)
def test_truncated_texts_are_parsed(text: str) -> None:
    check_truncation(lambda: MinimaxM2Parser(TOOLS), text)


def test_a_truncated_text_is_kept_without_marks() -> None:
    text = '<minimax:tool_call>\n<invoke name="f">\n<parameter name="text">Par</par'
    expected = Folded(calls=[("f", '{"text": "Par')])
    check_parser(lambda: MinimaxM2Parser(TOOLS), text, expected, FinishReason.LENGTH)


def thinking() -> Parser:
    return OutputFormat(MINIMAX_M2, MINIMAX_M2).make_parser(TOOLS, "]~b]ai\n<think>\n")


def test_reasoning_that_the_prompt_begins_is_parsed() -> None:
    check_parser(thinking, f"hm\n</think>\n\n{block(PARIS)}", Folded("", "hm", [PARIS_CALL]))


FRAGMENTS = [
    *("<minimax:tool_call>", "</minimax:tool_call>", '<invoke name="f">', "</invoke>", "</think>"),
    *('<parameter name="text">', '<parameter name="count">', "</parameter>", "\n", " ", "5", "{"),
]


def test_any_text(before_release: bool) -> None:
    check_any_text(thinking, FRAGMENTS, is_release=before_release)


def test_without_tools_nothing_is_a_call() -> None:
    make = OutputFormat(calls=MINIMAX_M2).make_parser
    assert parse(lambda: make((), ""), [block(PARIS)]) == Folded(block(PARIS))


def test_the_template_chooses() -> None:
    template = "<minimax:tool_call>\\n<invoke name=... <parameter name=... <think>"
    assert choose_output_format(template) == OutputFormat(MINIMAX_M2, MINIMAX_M2)
