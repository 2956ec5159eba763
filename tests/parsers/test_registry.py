"""The choice of a family."""

import pytest

from ouzel.errors import ModelLoadError
from ouzel.parsers.hermes import HERMES
from ouzel.parsers.registry import FAMILIES, OutputFormat, choose_output_format
from ouzel.types import FunctionTool
from tests.parsers.cutting import Folded, parse


def test_a_template_chooses() -> None:
    assert choose_output_format("<tool_call></tool_call>") == OutputFormat(HERMES, HERMES)
    assert choose_output_format("Hello") == OutputFormat()
    assert choose_output_format("") == OutputFormat()


def test_a_name_beats_the_template() -> None:
    chosen = choose_output_format("", tool_parser="hermes3", reasoning_parser="deepseek_r1")
    assert chosen.calls is HERMES
    assert chosen.reasoning is not None and chosen.reasoning.calls is None
    assert (
        choose_output_format("<tool_call></tool_call>", tool_parser="none", reasoning_parser="none") == OutputFormat()
    )


@pytest.mark.parametrize("option", ["tool_parser", "reasoning_parser"])
def test_an_unknown_name_is_refused(option: str) -> None:
    with pytest.raises(ModelLoadError, match=f"{option} must be one of auto, none, .*hermes.*, given 'wonder'"):
        choose_output_format("", **{option: "wonder"})


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("hermes3", "hermes"),
        ("qwen25", "hermes"),
        ("llama3", "llama3_json"),
        ("phi4_mini_json", "phi4"),
        ("granite4", "hermes"),
        ("deepseekv31", "deepseek_v31"),
        ("mistral", "mistral"),
        ("devstral", "devstral"),
        ("kimi_k2", "kimi_k2"),
    ],
)
def test_names_of_other_servers(name: str, family: str) -> None:
    chosen = choose_output_format("", tool_parser=name).calls
    assert chosen is not None and chosen.names[0] == family


@pytest.mark.parametrize(
    ("template", "calls", "reasoning"),
    [
        ("functools [TOOL_CALLS]", "phi4", "mistral"),
        ("[TOOL_CALLS] [ARGS] [THINK]", "devstral", "devstral"),
        ("[TOOL_CALLS] <|python_tag|>", "mistral", "mistral"),
        ("<|python_tag|> <tool_call></tool_call>", "llama3_json", "hermes"),
        ("<tool_call></tool_call> <think>", "hermes", "hermes"),
        ("content.split('</think>')", None, "think"),
    ],
)
def test_the_first_family_that_matches_counts(template: str, calls: str | None, reasoning: str | None) -> None:
    chosen = choose_output_format(template)
    assert (chosen.calls and chosen.calls.names[0]) == calls
    assert (chosen.reasoning and chosen.reasoning.names[0]) == reasoning


def test_names_are_unique() -> None:
    names = [name for family in FAMILIES for name in family.names]
    assert len(names) == len(set(names))


def test_without_tools_nothing_is_a_call() -> None:
    text = '<think>x</think><tool_call>{"name": "f"}</tool_call>'
    chosen = OutputFormat(HERMES, HERMES)
    without = parse(lambda: chosen.make_parser((), ""), [text])
    assert without == Folded('<tool_call>{"name": "f"}</tool_call>', "x")
    assert parse(lambda: chosen.make_parser((FunctionTool("f"),), ""), [text]) == Folded("", "x", [("f", "{}")])
    assert chosen.special_tokens(with_calls=False) == {"<think>", "</think>"}


@pytest.mark.parametrize(
    ("prompt_text", "folded"),
    [
        ("<think>\nA city", Folded("No.", " in Finland.")),
        ("What is <think>? <think>\nA </think>\n\nIt", Folded(" in Finland.\n</think>\n\nNo.")),
        ("It", Folded(" in Finland.\n</think>\n\nNo.")),
    ],
)
def test_an_answer_that_goes_on_may_be_inside_its_reasoning(prompt_text: str, folded: Folded) -> None:
    chosen = OutputFormat(reasoning=HERMES)
    text = " in Finland.\n</think>\n\nNo."
    assert parse(lambda: chosen.make_parser((), prompt_text, continues_prompt=True), [text]) == folded
