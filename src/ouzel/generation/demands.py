"""What a request demands of the output's form: tools that may or must be called, a format, or both.

They become one grammar. A model that reasons does so first and freely; then come the calls or the form.
"""

from collections.abc import Mapping

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import compile_format, with_reasoning
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Calls, Format, Reasoning, ReasoningStage
from ouzel.parsers.registry import OutputFormat
from ouzel.types import FunctionTool, Grammar

_ANY_ARGUMENTS: Format = {"type": "object"}


class OutputForm(msgspec.Struct, frozen=True):
    """What the whole output must look like."""

    format: Mapping[str, object]  # a structural-tag format
    param: str  # the request field that asks for it
    strict: bool = False  # a JSON schema in OpenAI's strict reading


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    tools: tuple[FunctionTool, ...]  # that may be called; without any, none may be
    are_all: bool  # that the model sees
    must_call: bool
    is_parallel: bool  # several calls in one answer
    guides_all: bool  # arguments obey their schemas even where nothing must be called


def grammar_for(
    use: ToolUse | None,
    form: OutputForm | None,
    *,
    output_format: OutputFormat,
    vocabulary: GrammarVocabulary,
    prompt_text: str,
    continues_prompt: bool = False,
    guards_calls: bool = False,
) -> Grammar | None:
    """None: nothing is demanded. Raises InvalidRequest for what cannot be honoured.

    `continues_prompt`: the prompt ends with a text of the assistant's own, that may have begun to reason.
    `guards_calls`: calls are of the tools given and well-formed even where nothing demands it, if they have marks that
    are nothing else. A model that begins something else with such a mark would leave it in the content.
    """
    calls = _calls_of(use, output_format)
    guards_calls = (
        guards_calls
        and calls is not None
        and _has_own_marks(calls, output_format, vocabulary)
        and (use is None or not use.tools or _leaves_arguments_free(calls))
    )
    if use is not None and calls is not None and use.must_call:
        demanded, param, strict = _all_calls(use, calls), "tools", False
    elif use is not None and calls is not None and form is not None and use.tools:
        either = [dict(form.format), _all_calls(msgspec.structs.replace(use, guides_all=True), calls)]
        demanded, param, strict = {"type": "or", "elements": either}, form.param, form.strict
    elif form is not None:
        demanded, param, strict = dict(form.format), form.param, form.strict
    elif use is not None and calls is not None and (guards_calls or _is_guided(use)):
        demanded, param, strict = _possible_calls(use, calls), "tools", False
    else:
        return None
    family = output_format.reasoning
    if family is not None and family.reasoning is not None:
        demanded = _after_reasoning(demanded, family.reasoning, prompt_text, continues_prompt=continues_prompt)
    try:
        return Grammar(compile_format(demanded, vocabulary, strict=strict), param)
    except GrammarError as error:
        name = _faulty_tool(use, calls, vocabulary) if use is not None and calls is not None else None
        place = param if name is None else f"tools: function {name!r}"
        raise InvalidRequest(f"{place}: {error}", param="tools" if name else param) from error


def _faulty_tool(use: ToolUse, calls: Calls, vocabulary: GrammarVocabulary) -> str | None:
    """The first whose calls are no grammar by themselves."""
    for tool in use.tools:
        try:
            compile_format(_call(tool, use, calls), vocabulary, strict=False)
        except GrammarError:
            return tool.name
    return None


def _calls_of(use: ToolUse | None, output_format: OutputFormat) -> Calls | None:
    if use is None or (not use.tools and output_format.calls is None):
        return None
    if output_format.calls is None or output_format.calls.calls is None:
        raise InvalidRequest("tools: it is not known how this model writes calls (see --tool-parser)", param="tools")
    return output_format.calls.calls


def _is_guided(use: ToolUse) -> bool:
    """Whether calls that need not come must still be right when they do."""
    is_demanding = use.guides_all or not use.is_parallel or not use.are_all or any(tool.strict for tool in use.tools)
    return is_demanding and bool(use.tools)


def _has_own_marks(calls: Calls, output_format: OutputFormat, vocabulary: GrammarVocabulary) -> bool:
    """Whether what begins calls and surrounds the reasoning is a token of its own: no text is taken for it."""
    family = output_format.reasoning
    marks = family.reasoning if family else None
    if marks is not None and (marks.ended_by or not {marks.start, marks.end} <= vocabulary.special_ids.keys()):
        return False
    return any(calls.trigger.startswith(mark) for mark in vocabulary.special_ids)


def _leaves_arguments_free(calls: Calls) -> bool:
    """Whether arguments of any content are written as those of a schema are; else a guard would change their form."""
    content = calls.call_format(FunctionTool("any", parameters=_ANY_ARGUMENTS))["content"]
    parts = content.get("elements", [content]) if isinstance(content, dict) else []
    return {"type": "json_schema", "json_schema": _ANY_ARGUMENTS} in parts


def _all_calls(use: ToolUse, calls: Calls) -> Format:
    """At least one call and nothing else."""
    return _sequence(_text(calls.before), *_inner_calls(use, calls), _text(calls.after))


def _possible_calls(use: ToolUse, calls: Calls) -> Format:
    """Text, with calls in it where the model begins them."""
    if not use.tools:
        return {"type": "any_text"}
    if calls.before:
        content = _sequence(*_inner_calls(use, calls))
        tags: list[Format] = [{"type": "tag", "begin": calls.before, "content": content, "end": calls.after}]
    else:
        tags = [_call(tool, use, calls) for tool in use.tools]
    return {
        "type": "triggered_tags",
        "triggers": [calls.trigger],
        "tags": tags,
        "stop_after_first": not use.is_parallel,
    }


def _inner_calls(use: ToolUse, calls: Calls) -> list[Format]:
    """What stands between `before` and `after`."""
    one: Format = {"type": "or", "elements": [_call(tool, use, calls) for tool in use.tools]}
    if not use.is_parallel:
        return [one]
    return [one, {"type": "star", "content": _sequence(_text(calls.separator), one)}]


def _call(tool: FunctionTool, use: ToolUse, calls: Calls) -> Format:
    obeys = use.must_call or use.guides_all or tool.strict or tool.parameters is None
    return calls.call_format(tool if obeys else msgspec.structs.replace(tool, parameters=_ANY_ARGUMENTS))


def _sequence(*elements: Format) -> Format:
    return {"type": "sequence", "elements": [element for element in elements if element != _text("")]}


def _text(value: str) -> Format:
    return {"type": "const_string", "value": value}


def _after_reasoning(demanded: Format, marks: Reasoning, prompt_text: str, *, continues_prompt: bool) -> Format:
    stage = marks.stage_after(prompt_text, continues_prompt=continues_prompt)
    if stage is ReasoningStage.OVER:
        return demanded
    ends = [marks.end, *marks.other_ends]
    return with_reasoning(
        demanded, start=marks.start, end=ends, excludes=marks.ended_by, is_open=stage is ReasoningStage.OPEN
    )
