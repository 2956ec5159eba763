"""Weakens or drops parts of a form that have no grammar, so that the request is still answered.

A schema loses its unsupported keywords, then its strictness. If that is not enough, it is dropped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from ouzel.generation.demands import FormRefused, OutputForm, ToolUse
from ouzel.grammar.formats import widen_format
from ouzel.types.engine_request import Grammar
from ouzel.types.tools import FunctionTool

_ANY_ARGUMENTS: dict[str, object] = {"type": "object"}

MakeGrammar = Callable[[ToolUse | None, OutputForm | None], Grammar | None]


@dataclass(frozen=True, slots=True)
class HonouredForms:
    """The grammar and the form that a request keeps, and the reasons for its dropped parts."""

    grammar: Grammar | None
    form: OutputForm | None  # form of the answer
    dropped: tuple[str, ...] = ()  # a reason for each dropped part


def honour_forms(use: ToolUse | None, form: OutputForm | None, make: MakeGrammar) -> HonouredForms:
    """Drops each part without a grammar, as `make` tells, and returns the rest.

    First it weakens the schemas of the tools, each once; then the form of the answer. Finally it
    drops every demand on calls.
    """
    reasons: list[str] = []
    weaker_forms = iter(()) if form is None else _weaker_forms(form)
    has_weakened_tools = False
    while True:
        try:
            return HonouredForms(make(use, form), form, tuple(dict.fromkeys(reasons)))
        except FormRefused as error:
            if error.tool_name is not None and use is not None and not has_weakened_tools:
                has_weakened_tools = True
                held = replace(use, guides_all=use.guides_all or form is not None)
                use = replace(
                    use, tools=tuple(_weaken(tool, held, make, reasons) for tool in use.tools)
                )
                continue
            reasons.append(str(error))
            if form is not None:
                form = next(weaker_forms, None)
            else:
                use = None


def honour_foreign_tools(
    use: ToolUse | None, form: OutputForm | None, make: MakeGrammar
) -> HonouredForms:
    """Drops constraints of foreign tools that have no grammar, because no client can correct them.

    Raises FormRefused for every other part without a grammar.
    """
    try:
        return HonouredForms(make(use, form), form)
    except FormRefused as error:
        if use is None or not any(
            tool.is_foreign and tool.name == error.tool_name for tool in use.tools
        ):
            raise
    reasons: list[str] = []
    held = replace(use, guides_all=use.guides_all or form is not None)
    tools = tuple(
        _weaken(tool, held, make, reasons) if tool.is_foreign else tool for tool in use.tools
    )
    grammar = make(replace(use, tools=tools), form)
    return HonouredForms(grammar, form, tuple(dict.fromkeys(reasons)))


def _weaken(
    tool: FunctionTool, use: ToolUse, make: MakeGrammar, reasons: list[str]
) -> FunctionTool:
    """Returns the tool or its first weaker form with a grammar.

    Appends the reasons to `reasons`.
    """
    weakest = tool
    for weakest in (tool, *_weaker_tools(tool)):
        try:
            make(replace(use, tools=(weakest,)), None)
            break
        except FormRefused as error:
            reasons.append(str(error))
    return weakest


def _weaker_forms(form: OutputForm) -> Iterator[OutputForm]:
    widened = replace(form, format=widen_format(form.format))
    if widened != form:
        yield widened
    if form.strict:
        yield replace(widened, strict=False)


def _weaker_tools(tool: FunctionTool) -> Iterator[FunctionTool]:
    """Yields weaker and weaker tools.

    The last one takes any arguments (a custom tool: any text).
    """
    if tool.is_custom:
        yield replace(tool, text_grammar=None)
        return
    widened = replace(tool, parameters=_widen_schema(tool.parameters))
    if widened != tool:
        yield widened
    if tool.strict:
        yield replace(widened, strict=False)
    yield replace(tool, parameters=_ANY_ARGUMENTS, strict=False)


def _widen_schema(schema: dict[str, object] | None) -> dict[str, object] | None:
    if schema is None:
        return None
    widened = widen_format({"json_schema": schema})["json_schema"]
    assert isinstance(widened, dict)
    return widened
