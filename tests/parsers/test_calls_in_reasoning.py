"""A call's mark ends open reasoning only if the model wrote it as a control token."""

from functools import partial

import pytest

from ouzel.parsers.base import CONTROL_SIGN, Parser
from ouzel.parsers.registry import FAMILIES, OutputFormat, choose_output_format
from ouzel.types.step_output import FinishReason
from ouzel.types.tools import FunctionTool
from tests.parsers.cutting import Folded, check_any_text, check_parser

TOOLS = (
    FunctionTool(
        "get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
    ),
)
PARIS = '{"city": "Paris"}'
CALLS = {
    "hermes": f'<tool_call>\n{{"name": "get_weather", "arguments": {PARIS}}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=get_weather>\n"
    "<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
    "glm45": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "</tool_call>"
    ),
    "minicpm5": '<function name="get_weather"><param name="city">Paris</param></function>',
    "lfm2": '<|tool_call_start|>[get_weather(city="Paris")]<|tool_call_end|>',
    "mistral": f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {PARIS}}}]',
    "devstral": f"[TOOL_CALLS]get_weather[ARGS]{PARIS}",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    f"{PARIS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "gemma4": '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
}
# Families in which a mark within the reasoning changes nothing
UNCHANGED = {
    "gpt_oss": "messages have their own ends",
    "granite": "the reasoning ends with words",
    "olmo3": "the mark is no token",
}


def output_format(name: str) -> OutputFormat:
    [family] = [family for family in FAMILIES if family.names[0] == name]
    chosen = OutputFormat(family, family)
    return chosen.ending_at_calls(chosen.special_tokens(with_calls=True))


def parser(name: str, prompt_text: str = "") -> Parser:
    return output_format(name).make_parser(TOOLS, prompt_text)


def find_start(name: str) -> str:
    chosen = output_format(name)
    assert chosen.reasoning is not None and chosen.reasoning.reasoning is not None
    return chosen.reasoning.reasoning.start


@pytest.mark.parametrize("name", CALLS)
def test_a_call_within_the_reasoning_is_a_call(name: str) -> None:
    begun = find_start(name)
    for text, prompt_text in (
        (f"{begun}hm\n{CONTROL_SIGN}{CALLS[name]}", ""),
        (f"hm{CONTROL_SIGN}{CALLS[name]}", begun),
    ):
        expected = Folded("", "hm", [("get_weather", PARIS)])
        check_parser(partial(parser, name, prompt_text), text, expected)


@pytest.mark.parametrize("name", CALLS)
def test_a_mark_that_is_spelled_in_other_tokens_stays_reasoning(name: str) -> None:
    check_parser(
        lambda: parser(name), f"{find_start(name)}hm {CALLS[name]}", Folded("", f"hm {CALLS[name]}")
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_mark_after_the_reasoning_is_read_as_ever(name: str) -> None:
    chosen = output_format(name)
    assert chosen.reasoning is not None and chosen.reasoning.reasoning is not None
    end = chosen.reasoning.reasoning.end
    for before, reasoning in (("", ""), (f"{find_start(name)}hm{end}", "hm")):
        expected = Folded("", reasoning, [("get_weather", PARIS)])
        check_parser(lambda: parser(name), f"{before}{CONTROL_SIGN}{CALLS[name]}", expected)


def test_a_mark_without_a_call_ends_the_reasoning_too() -> None:
    text = f"<think>hm {CONTROL_SIGN}<tool_call> so</think>Yes"
    check_parser(lambda: parser("hermes"), text, Folded("<tool_call> so</think>Yes", "hm "))


def test_a_mark_that_is_cut_off_is_no_reasoning() -> None:
    expected = Folded("<tool_call>", "hm")
    check_parser(
        lambda: parser("hermes"),
        f"<think>hm\n{CONTROL_SIGN}<tool_call>",
        expected,
        FinishReason.LENGTH,
    )


def test_without_tools_no_mark_ends_the_reasoning() -> None:
    text = f"<think>hm {CALLS['hermes']}</think>Yes"
    check_parser(
        lambda: output_format("hermes").make_parser((), ""),
        text,
        Folded("Yes", f"hm {CALLS['hermes']}"),
    )


@pytest.mark.parametrize("name", UNCHANGED)
def test_families_without_such_a_mark_are_left_alone(name: str) -> None:
    assert output_format(name).call_mark == ""


def test_the_mark_must_be_a_control_token() -> None:
    chosen = choose_output_format("<tool_call></tool_call><think>")
    assert chosen.ending_at_calls(["<tool_call>", "</think>"]).call_mark == "<tool_call>"
    assert chosen.ending_at_calls(["</think>"]) == chosen
    assert chosen.ending_at_calls(["<tool_call>"]) == chosen, (
        "a grammar could not tell the end of the reasoning"
    )


FRAGMENTS = [
    "<think>",
    "</think>",
    "<tool_call>",
    CONTROL_SIGN + "<tool_call>",
    "</tool_call>",
    "\n",
    " ",
]


def test_any_text(before_release: bool) -> None:
    fragments = [*FRAGMENTS, '{"name": "f", "arguments": ', '{"a": "', '"}', "}"]
    check_any_text(lambda: parser("hermes"), fragments, is_release=before_release)
