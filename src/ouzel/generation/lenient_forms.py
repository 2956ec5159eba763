"""A part of a form that cannot become a grammar is dropped, so that the request is answered without it."""

from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from ouzel.generation.demands import FormRefused, OutputForm, ToolUse
from ouzel.types import FunctionTool, Grammar

_ANY_ARGUMENTS: dict[str, object] = {"type": "object"}

MakeGrammar = Callable[[ToolUse | None, OutputForm | None], Grammar | None]


@dataclass(frozen=True, slots=True)
class HonouredForms:
    """Holds the parts of a request's forms that count."""

    grammar: Grammar | None
    form: OutputForm | None  # of the answer
    dropped: tuple[str, ...] = ()  # a reason for each part that does not count


def honour_forms(use: ToolUse | None, form: OutputForm | None, make: MakeGrammar) -> HonouredForms:
    """Drops each part of which `make` cannot make a grammar, and returns the rest.

    Parts are dropped one by one: the schema of a tool, whose call may then have any arguments; the form of the answer;
    and at last everything that is demanded of calls.
    """
    dropped: list[str] = []
    freed: set[str] = set()  # tools
    while True:
        try:
            return HonouredForms(make(use, form), form, tuple(dropped))
        except FormRefused as error:
            dropped.append(str(error))
            name = error.tool_name
            if use is not None and name is not None and name not in freed:
                freed.add(name)
                use = replace(use, tools=tuple(_freed(tool) if tool.name == name else tool for tool in use.tools))
            elif form is not None:
                form = None
            else:
                use = None


def _freed(tool: FunctionTool) -> FunctionTool:
    """Returns the tool as one that takes any arguments, or any text where it is a custom tool."""
    if tool.is_custom:
        return replace(tool, text_grammar=None)
    return replace(tool, parameters=_ANY_ARGUMENTS, strict=False)
