"""A request demands a form of the output: tools that may or must be called, a format, or both.

They become one grammar. A model that reasons does so first and freely; then come the calls or the form.
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
# in an answer that must call: a model that has never learnt to stop would call for ever
_MAX_FORCED_CALLS = 32


class OutputForm(msgspec.Struct, frozen=True):
    """The whole output has to be of this format."""

    format: Mapping[str, object]  # a structural-tag format
    param: str  # the request field that asks for it
    strict: bool = False  # a JSON schema in OpenAI's strict reading


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    tools: tuple[FunctionTool, ...]  # that may be called; without any, none may be
    are_all: bool  # that the model sees
    must_call: bool
    is_parallel: bool  # several calls in one answer
    guides_all: bool  # arguments obey their schemas even where nothing must be called


class _Demand(msgspec.Struct, frozen=True):
    """The output, or what follows its reasoning, has to be of this format."""

    format: Format
    param: str  # the request field that asks for it
    strict: bool = False
    calls: Format | None = None  # the part of the format that begins with a call, if there is one
    call_formats: "_CallFormats | None" = None  # that are part of it


class FormRefused(InvalidRequest):
    """No grammar can be made of a tool's calls, or else of the form that the output has to have."""

    def __init__(self, message: str, *, param: str, tool_name: str | None = None) -> None:
        super().__init__(message, param=param)
        self.tool_name = tool_name


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
    """Returns None where nothing is demanded.

    Raises FormRefused for a form or a tool of which no grammar can be made, InvalidRequest where it is not known how
    the model writes calls.

    `continues_prompt`: the prompt ends with a text of the assistant's own, that may have begun to reason.
    `guards_calls`: calls are of the tools given and well-formed even where nothing demands it, if they have marks that
    are nothing else. A model that begins something else with such a mark would leave it in the content.
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
    demand = _demand_of(formats, form, answer_start=answer_start, has_guard=has_guard)
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
            f"tools: {_of_tool(tool, str(error))}", param="tools", tool_name=tool.name
        ) from error


def _demand_of(
    formats: "_CallFormats | None", form: OutputForm | None, *, answer_start: str, has_guard: bool
) -> _Demand | None:
    """Returns what the first rule that applies demands."""
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
    """Returns None where no call can come. Raises InvalidRequest where calls may come and have no known form."""
    if use is None or (not use.tools and output_format.calls is None):
        return None
    if output_format.calls is None or output_format.calls.calls is None:
        raise InvalidRequest(
            ": it is not known how this model writes calls (see --tool-parser)", field="tools"
        )
    return _CallFormats(use, output_format.calls.calls)


class _CallFormats(msgspec.Struct, frozen=True):
    """Gives the formats of a request's calls, as one family writes them."""

    use: ToolUse
    calls: Calls

    @property
    def are_guided(self) -> bool:
        """Says whether calls that need not come must still be right when they do."""
        use = self.use
        demands = use.guides_all or not use.is_parallel or not use.are_all
        return bool(use.tools) and (
            demands or any(tool.strict or tool.text_grammar for tool in use.tools)
        )

    def can_be_guarded(self, marks: Reasoning | None, vocabulary: GrammarVocabulary) -> bool:
        """Says whether a grammar for calls that need not come takes nothing else for one and changes no call's form."""
        return self._has_own_marks(marks, vocabulary) and (
            not self.use.tools or self._leaves_arguments_free()
        )

    def _has_own_marks(self, marks: Reasoning | None, vocabulary: GrammarVocabulary) -> bool:
        """Says whether what begins calls and surrounds the reasoning is a token of its own: no text is taken for it."""
        if marks is not None and (
            marks.ended_by or not {marks.start, marks.end} <= vocabulary.special_ids.keys()
        ):
            return False
        return any(self.calls.trigger.startswith(mark) for mark in vocabulary.special_ids)

    def _leaves_arguments_free(self) -> bool:
        """Says whether free arguments are written as those of a schema are; else a guard would change their form."""
        content = self.calls.call_format(FunctionTool("any", parameters=_ANY_ARGUMENTS))["content"]
        parts = content.get("elements", [content]) if isinstance(content, dict) else []
        return {"type": "json_schema", "json_schema": _ANY_ARGUMENTS} in parts

    def obeying_schemas(self) -> "_CallFormats":
        """Returns the formats of calls that all obey their tools' schemas."""
        return _CallFormats(msgspec.structs.replace(self.use, guides_all=True), self.calls)

    def calls_alone(self) -> Format:
        """Returns the format of at least one call and nothing else, of a bounded number of calls.

        Whitespace that separates calls may follow the last one too: so the model chooses between another call and the
        end where it writes the call's mark, not by a line break that it writes in any case.
        """
        inside = _sequence(*self._calls_inside(most=_MAX_FORCED_CALLS))
        may_trail = self.use.is_parallel and not self.calls.after and self.calls.separator.isspace()
        trail: list[Format] = (
            [{"type": "optional", "content": _text(self.calls.separator)}] if may_trail else []
        )
        return _sequence(_text(self.calls.before), inside, _text(self.calls.after), *trail)

    def text_with_calls(self, answer_start: str) -> Format:
        """Returns the format of text with calls in it where the model begins them.

        Text that has to begin with `answer_start` is a message of its own, so that either text or calls come.
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
            tags = [self._call_of(tool) for tool in use.tools]
        return {
            "type": "triggered_tags",
            "triggers": [calls.trigger],
            "tags": tags,
            "stop_after_first": not use.is_parallel,
        }

    def faulty_tool(self, vocabulary: GrammarVocabulary) -> FunctionTool | None:
        """Returns the first tool whose calls are no grammar by themselves."""
        for tool in self.use.tools:
            try:
                compile_format(
                    self._call_of(tool), vocabulary, strict=False, styles=PARAMETER_STYLES
                )
            except GrammarError:
                return tool
        return None

    def _calls_inside(self, most: int | None = None) -> list[Format]:
        """Returns the formats between `before` and `after`, of `most` calls or of any number."""
        tags = [self._call_of(tool) for tool in self.use.tools]
        one: Format = {"type": "triggered_tags", "triggers": [self.calls.trigger], "tags": tags}
        one |= {
            "at_least_one": True,
            "stop_after_first": True,
        }  # so that all calls share one rule of the grammar
        if self.calls.before:
            one = {"type": "or", "elements": tags}
        if not self.use.is_parallel:
            return [one]
        more: Format = {"type": "repeat", "content": _sequence(_text(self.calls.separator), one)}
        return [one, more | {"min": 0, "max": -1 if most is None else most - 1}]

    def _call_of(self, tool: FunctionTool) -> Format:
        is_held = tool.strict or tool.is_custom or tool.parameters is None
        obeys = is_held or self.use.must_call or self.use.guides_all
        return self.calls.call_format(
            tool if obeys else msgspec.structs.replace(tool, parameters=_ANY_ARGUMENTS)
        )


def _of_tool(tool: FunctionTool, complaint: str) -> str:
    """Says what is wrong with a tool; a client has written its grammar in the field `format`."""
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
    """Returns the format with the reasoning before it, within which `calls` may come if there are any."""
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
