"""What a request's tools come to under each family, where nothing has to be called."""

import msgspec
import pytest

from ouzel.generation.demands import ToolUse, grammar_for
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Family
from ouzel.parsers.registry import FAMILIES, OutputFormat
from ouzel.types import FunctionTool, Grammar

TOOL = FunctionTool("get_weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}})
AUTO = ToolUse(tools=(TOOL,), are_all=True, must_call=False, is_parallel=True, guides_all=False)
GUIDED = msgspec.structs.replace(AUTO, guides_all=True)
NONE = ToolUse(tools=(), are_all=False, must_call=False, is_parallel=False, guides_all=False)
WITH_CALLS = {family.names[0]: family for family in FAMILIES if family.calls is not None}
UNGUARDED = {  # under auto
    "llama3_json": "calls begin like any JSON",
    "pythonic": "calls begin like any list",
    "phi4": "calls begin with a word",
    "gpt_oss": "reasoning and calls begin with the same mark",
    "granite": "reasoning begins with words",
    "kimi_k2": "calls may break off the reasoning",
    "gemma4": "arguments are no JSON",
    "functiongemma": "arguments are no JSON",
    "lfm2": "arguments are no JSON",
    "olmo3": "arguments are no JSON",
    "llama4_pythonic": "arguments are no JSON",
    "qwen3_coder": "arguments are no JSON",
    "glm45": "arguments are no JSON",
    "minicpm5": "arguments are no JSON",
}


def vocabulary(family: Family) -> GrammarVocabulary:
    marks = OutputFormat(calls=family, reasoning=family).special_tokens(with_calls=True)
    return GrammarVocabulary({mark: 10 + place for place, mark in enumerate(sorted(marks))}, 1000, (5,))


def grammar(use: ToolUse, family: Family, *, guards_calls: bool = True) -> Grammar | None:
    return grammar_for(
        use,
        None,
        output_format=OutputFormat(calls=family, reasoning=family),
        vocabulary=vocabulary(family),
        prompt_text="",
        guards_calls=guards_calls,
    )


@pytest.mark.parametrize("name", WITH_CALLS)
def test_calls_are_guarded_where_they_begin_with_a_token_of_their_own_and_hold_json(name: str) -> None:
    assert (grammar(AUTO, WITH_CALLS[name]) is None) == (name in UNGUARDED)


@pytest.mark.parametrize("use", [AUTO, NONE])
def test_nothing_is_guarded_where_that_is_not_welcome(use: ToolUse) -> None:
    assert grammar(use, WITH_CALLS["hermes"], guards_calls=False) is None


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "glm45"])
def test_where_no_tool_may_be_called_no_call_can_begin(name: str) -> None:
    family = WITH_CALLS[name]
    assert family.calls is not None
    forbidding, possible = grammar(NONE, family), grammar(GUIDED, family)
    assert forbidding is not None
    assert possible is not None
    trigger = f"<[{vocabulary(family).special_ids[family.calls.trigger]}]>"
    assert trigger in possible.text
    assert trigger not in forbidding.text
