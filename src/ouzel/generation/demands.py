"""Turns the demands of a request on its output into one grammar: tool calls, a format, or both.

A model that reasons does so first and freely; then come the calls or the form.
"""

import re
from collections.abc import Mapping

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import add_reasoning, compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.base import Calls, Format, Reasoning, ReasoningStage
from ouzel.parsers.registry import PARAMETER_STYLES, OutputFormat
from ouzel.types.engine_request import Grammar
from ouzel.types.tools import FunctionTool

_PLACE_OF_GRAMMAR = re.compile(r"format\S*\.definition")
_ANY_ARGUMENTS: Format = {"type": "object"}
# An answer that must call has at most so many calls: a model that never learnt to stop would call
# for ever.
_MAX_FORCED_CALLS = 32


class OutputForm(msgspec.Struct, frozen=True):
    """A format that the whole output must have."""

    format: Mapping[str, object]  # a structural-tag format
    param: str  # the request field that asks for the format
    strict: bool = False  # whether a JSON schema is read as in OpenAI's strict mode


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that the model may or must call."""

    tools: tuple[FunctionTool, ...]  # tools that may be called; empty: no tool may be called
    are_all: bool  # the model sees no other tools
    must_call: bool
    is_parallel: bool  # several calls may be in one answer
    guides_all: bool  # arguments obey their schemas even if no call is required


class _Demand(msgspec.Struct, frozen=True):
    """A format that the output, or the output after its reasoning, must have."""

    format: Format
    param: str  # the request field that asks for the format
    strict: bool = False
    calls: Format | None = None  # the part of the format that begins with a call, if there is one
    call_formats: "_CallFormats | None" = None  # formats of the calls in the format


class FormRefused(InvalidRequest):
    """No grammar can be made of the form, or of the calls of the tool `tool_name`."""

    def __init__(self, message: str, *, param: str, tool_name: str | None = None) -> None:
        super().__init__(message, param=param)
        self.tool_name = tool_name


def make_grammar(
    use: ToolUse | None,
    form: OutputForm | None,
    *,
    output_format: OutputFormat,
    vocabulary: GrammarVocabulary,
    prompt_text: str,
    continues_prompt: bool = False,
    guards_calls: bool = False,
) -> Grammar | None:
    """Makes the grammar of the output; None if nothing is demanded.

    Raises FormRefused for a form or a tool without a grammar, and InvalidRequest if the model's
    form of calls is unknown.

    * `continues_prompt`: the prompt ends with a text of the assistant, which may have begun to
    reason.
    - `guards_calls`: calls must be well-formed calls of the given tools even if no call is
      demanded, provided that their marks mean nothing else. If the model begins other text with
      such a mark, the text is content.
    """
    marks = output_format.reasoning.reasoning if output_format.reasoning else None
    stage = ReasoningStage.OVER
    if marks is not None:
        stage = marks.stage_after(prompt_text, continues_prompt=continues_prompt)
    answer_start = "" if marks is None or stage is ReasoningStage.OVER else marks.answer_start
    formats = _call_formats(use, output_format)
    can_end_reasoning = (
        stage is not ReasoningStage.OVER and output_format.call_mark in vocabulary.special_ids
    )
    has_guard = guards_calls and formats is not None and formats.can_be_guarded(marks, vocabulary)
    demand = _find_demand(formats, form, answer_start=answer_start, has_guard=has_guard)
    if demand is None:
        return None
    calls = demand.calls if can_end_reasoning else None
    format = (
        demand.format if marks is None else _after_reasoning(demand.format, marks, stage, calls)
    )
    try:
        text = compile_format(format, vocabulary, strict=demand.strict, styles=PARAMETER_STYLES)
        return Grammar(text, demand.param)
    except GrammarError as error:
        tool = None if demand.call_formats is None else demand.call_formats.faulty_tool(vocabulary)
        if tool is None:
            raise FormRefused(f"{demand.param}: {error}", param=demand.param) from error
        raise FormRefused(
            f"tools: {_describe_fault(tool, str(error))}", param="tools", tool_name=tool.name
        ) from error


def _find_demand(
    formats: "_CallFormats | None", form: OutputForm | None, *, answer_start: str, has_guard: bool
) -> _Demand | None:
    """Returns the demand of the first rule that applies."""
    if formats is not None and formats.use.must_call:
        calls = formats.calls_alone()
        return _Demand(calls, "tools", calls=calls, call_formats=formats)
    if formats is not None and formats.use.tools and form is not None:
        obeying = formats.obeying_schemas()
        calls = obeying.calls_alone()
        either = [_answer(answer_start, dict(form.format)), calls]
        return _Demand({"type": "or", "elements": either}, form.param, form.strict, calls, obeying)
    if form is not None:
        return _Demand(_answer(answer_start, dict(form.format)), form.param, form.strict)
    if formats is not None and (has_guard or formats.are_guided):
        text = formats.text_with_calls(answer_start)
        at_least_one = text | {"at_least_one": True} if formats.use.tools else None
        return _Demand(text, "tools", calls=at_least_one, call_formats=formats)
    return None


def _call_formats(use: ToolUse | None, output_format: OutputFormat) -> "_CallFormats | None":
    """Returns the formats of the calls; None if no call can come.

    Raises InvalidRequest if calls may come and their form is unknown.
    """
    if use is None or (not use.tools and output_format.calls is None):
        return None
    if output_format.calls is None or output_format.calls.calls is None:
        raise InvalidRequest(
            ": the form of this model's tool calls is unknown (see --tool-parser)", field="tools"
        )
    return _CallFormats(use, output_format.calls.calls)


class _CallFormats(msgspec.Struct, frozen=True):
    """Makes the formats of a request's calls in the syntax of one model family."""

    use: ToolUse
    calls: Calls

    @property
    def are_guided(self) -> bool:
        """Tells whether optional calls must be well-formed too."""
        use = self.use
        demands = use.guides_all or not use.is_parallel or not use.are_all
        return bool(use.tools) and (
            demands or any(tool.strict or tool.text_grammar for tool in use.tools)
        )

    def can_be_guarded(self, marks: Reasoning | None, vocabulary: GrammarVocabulary) -> bool:
        """Tells whether a grammar for optional calls mistakes no text for a call and changes no
        call's form.
        """
        return self._has_own_marks(marks, vocabulary) and (
            not self.use.tools or self._leaves_arguments_free()
        )

    def _has_own_marks(self, marks: Reasoning | None, vocabulary: GrammarVocabulary) -> bool:
        """Tells whether the marks of calls and reasoning are tokens of their own, which text cannot
        spell.
        """
        if marks is not None and (
            marks.ended_by or not {marks.start, marks.end} <= vocabulary.special_ids.keys()
        ):
            return False
        return any(self.calls.trigger.startswith(mark) for mark in vocabulary.special_ids)

    def _leaves_arguments_free(self) -> bool:
        """Tells whether free arguments have the format of a schema's.

        Otherwise a guard would change it.
        """
        content = self.calls.call_format(FunctionTool("any", parameters=_ANY_ARGUMENTS))["content"]
        parts = content.get("elements", [content]) if isinstance(content, dict) else []
        return {"type": "json_schema", "json_schema": _ANY_ARGUMENTS} in parts

    def obeying_schemas(self) -> "_CallFormats":
        """Returns the formats of calls that all obey their tools' schemas."""
        return _CallFormats(msgspec.structs.replace(self.use, guides_all=True), self.calls)

    def calls_alone(self) -> Format:
        """Returns the format of at least one call and nothing else, with a bounded number of calls.

        Whitespace that separates calls may also follow the last one. So the model chooses between
        another call and the end when it writes the call's mark, not by a line break that it writes
        in any case.
        """
        inside = _sequence(*self._calls_inside(most=_MAX_FORCED_CALLS))
        may_trail = self.use.is_parallel and not self.calls.after and self.calls.separator.isspace()
        trail: list[Format] = (
            [{"type": "optional", "content": _text(self.calls.separator)}] if may_trail else []
        )
        return _sequence(_text(self.calls.before), inside, _text(self.calls.after), *trail)

    def text_with_calls(self, answer_start: str) -> Format:
        """Returns the format of text with calls where the model begins them.

        Text that must begin with `answer_start` is a message of its own, so the output is either
        text or calls.
        """
        use, calls = self.use, self.calls
        text = _answer(answer_start, {"type": "any_text"})
        if not use.tools:
            return text
        if answer_start:
            return {"type": "or", "elements": [text, self.calls_alone()]}
        if calls.before:
            content = _sequence(*self._calls_inside())
            tags: list[Format] = [
                {"type": "tag", "begin": calls.before, "content": content, "end": calls.after}
            ]
        else:
            tags = [self._make_call_format(tool) for tool in use.tools]
        return {
            "type": "triggered_tags",
            "triggers": [calls.trigger],
            "tags": tags,
            "stop_after_first": not use.is_parallel,
        }

    def faulty_tool(self, vocabulary: GrammarVocabulary) -> FunctionTool | None:
        """Returns the first tool whose calls have no grammar."""
        for tool in self.use.tools:
            try:
                compile_format(
                    self._make_call_format(tool), vocabulary, strict=False, styles=PARAMETER_STYLES
                )
            except GrammarError:
                return tool
        return None

    def _calls_inside(self, most: int | None = None) -> list[Format]:
        """Returns the formats between `before` and `after`: at most `most` calls, or any number."""
        tags = [self._make_call_format(tool) for tool in self.use.tools]
        one: Format = {"type": "triggered_tags", "triggers": [self.calls.trigger], "tags": tags}
        # All calls share one rule of the grammar.
        one |= {"at_least_one": True, "stop_after_first": True}
        if self.calls.before:
            one = {"type": "or", "elements": tags}
        if not self.use.is_parallel:
            return [one]
        more: Format = {"type": "repeat", "content": _sequence(_text(self.calls.separator), one)}
        return [one, more | {"min": 0, "max": -1 if most is None else most - 1}]

    def _make_call_format(self, tool: FunctionTool) -> Format:
        is_held = tool.strict or tool.is_custom or tool.parameters is None
        obeys = is_held or self.use.must_call or self.use.guides_all
        return self.calls.call_format(
            tool if obeys else msgspec.structs.replace(tool, parameters=_ANY_ARGUMENTS)
        )


def _describe_fault(tool: FunctionTool, complaint: str) -> str:
    """Describes a fault of a tool.

    The client wrote a custom tool's grammar in the field `format`.
    """
    if tool.is_custom:
        return f"custom tool {tool.name!r}: {_PLACE_OF_GRAMMAR.sub('format.definition', complaint)}"
    return f"function {tool.name!r}: {complaint}"


def _answer(start: str, format: Format) -> Format:
    return _sequence(_text(start), format) if start else format


def _sequence(*elements: Format) -> Format:
    return {
        "type": "sequence",
        "elements": [element for element in elements if element != _text("")],
    }


def _text(value: str) -> Format:
    return {"type": "const_string", "value": value}


def _after_reasoning(
    format: Format, marks: Reasoning, stage: ReasoningStage, calls: Format | None
) -> Format:
    """Returns the format after the reasoning, within which `calls` may come if they are given."""
    match stage:
        case ReasoningStage.OVER:
            return format
        case ReasoningStage.BEFORE | ReasoningStage.OPEN:
            return add_reasoning(
                format,
                start=marks.start,
                ends=[marks.end, *marks.other_ends],
                is_open=stage is ReasoningStage.OPEN,
                excludes=marks.ended_by,
                may_break=not marks.answer_start,
                calls=calls,
            )
