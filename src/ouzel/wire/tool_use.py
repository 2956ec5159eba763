"""Reads the tool fields of a request: the tools in the prompt, and the calls that are allowed."""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.generation import ToolUse
from ouzel.wire.offered_tools import (
    NO_HOSTED_TOOLS,
    NO_TOOLS,
    ClientName,
    HostedOffer,
    OfferedTool,
    ToolNames,
    assign_names,
    offer_function,
    offered_tools,
)
from ouzel.wire.tools import (
    AllowedToolList,
    AllowedTools,
    AnyNamedTool,
    Choice,
    NamedCustomTool,
    NamedFunction,
    NamedHostedTool,
    NamedMcp,
    NamedTool,
    ToolFields,
)


class RequestTools(msgspec.Struct, frozen=True):
    """The tools of a request. Without tools, `definitions` and `use` are None."""

    definitions: list[dict[str, object]] | None  # tool definitions for the prompt
    use: ToolUse | None  # the tool calls that are allowed or required
    names: ToolNames = NO_TOOLS
    warnings: tuple[str, ...] = ()  # one warning for each tool that is left out


class _OfferFields(msgspec.Struct, frozen=True):
    """The tools of a request and the choice among them, from the new or old fields."""

    offered: list[OfferedTool]
    choice: Choice | None
    field: str  # the name of the field with the tools
    choice_field: str  # the name of the field with the choice
    warnings: tuple[str, ...] = ()

    @property
    def is_old(self) -> bool:
        return self.field == "functions"


def read_tools(
    body: ToolFields,
    *,
    guides_all: bool = False,
    refuses_unknown: bool = False,
    hosted: HostedOffer = NO_HOSTED_TOOLS,
) -> RequestTools:
    """Reads the tools of a request; `hosted` are the tools that this server runs.

    `guides_all` applies if the request does not set `enable_tool_guided_generation`. Raises
    InvalidRequest if the fields contradict each other.
    """
    fields = _offer_fields(body, refuses_unknown=refuses_unknown, hosted=hosted)
    names = assign_names(fields.offered)
    if not fields.offered:
        if fields.choice not in (None, "none", "auto"):
            raise InvalidRequest(f"needs {fields.field}", field=fields.choice_field)
        return RequestTools(None, None)
    if fields.choice == "none":
        use = ToolUse(tools=(), are_all=False, must_call=False, is_parallel=False, guides_all=False)
        return RequestTools(None, use, names, fields.warnings)
    own_guides = body.enable_tool_guided_generation
    use = _use(
        fields,
        names,
        is_parallel=not fields.is_old and body.parallel_tool_calls is not False,
        guides_all=guides_all if own_guides is None else own_guides,
    )
    definitions = [tool.definition(names.for_model(tool.name)) for tool in fields.offered]
    return RequestTools(definitions, use, names, fields.warnings)


def _offer_fields(body: ToolFields, *, refuses_unknown: bool, hosted: HostedOffer) -> _OfferFields:
    if body.functions is None and body.function_call is None:
        offered, warnings = offered_tools(
            body.tools or [], refuses_unknown=refuses_unknown, hosted=hosted
        )
        return _OfferFields(offered, body.tool_choice, "tools", "tool_choice", warnings)
    if body.tools is not None or body.tool_choice is not None:
        field = "functions" if body.functions is not None else "function_call"
        raise InvalidRequest("must not be given beside tools or tool_choice", field=field)
    choice = body.function_call
    named = NamedTool(choice) if isinstance(choice, NamedFunction) else choice
    functions = body.functions or []
    offered = [
        offer_function(function, f"functions[{position}]")
        for position, function in enumerate(functions)
    ]
    return _OfferFields(offered, named, "functions", "function_call")


def _use(fields: _OfferFields, names: ToolNames, *, is_parallel: bool, guides_all: bool) -> ToolUse:
    param = "function_call.name" if fields.is_old else fields.choice_field
    callable_tools, must_call, is_single = _callable_tools(fields.choice, fields.offered, param)
    return ToolUse(
        tools=tuple(
            tool.tool(names.for_model(tool.name))
            for tool in fields.offered
            if tool.name in callable_tools
        ),
        are_all=len(callable_tools) == len(fields.offered),
        must_call=must_call,
        is_parallel=is_parallel and not is_single,
        guides_all=guides_all,
    )


def _callable_tools(
    choice: Choice | None, offered: Sequence[OfferedTool], param: str
) -> tuple[set[ClientName], bool, bool]:
    """Returns the callable tools, whether a call is required, and whether one tool is forced."""
    match choice:
        case None | "none" | "auto":
            return {tool.name for tool in offered}, False, False
        case "required":
            return {tool.name for tool in offered}, True, False
        case NamedTool() | NamedCustomTool():
            return {_known_name(choice, offered, param)}, True, True
        case NamedHostedTool():
            return _hosted_names(choice, offered, param), True, True
        case AllowedTools():
            allowed_list, path = _allowed_list(choice, param)
            names = {
                name
                for position, tool in enumerate(allowed_list.tools)
                for name in _allowed_names(tool, offered, f"{path}.tools[{position}]")
            }
            return names, allowed_list.mode == "required", False
        case unreachable:
            assert_never(unreachable)


def _allowed_list(choice: AllowedTools, param: str) -> tuple[AllowedToolList, str]:
    """Returns the list of allowed tools and its path in the request."""
    if choice.allowed_tools is not None:
        return choice.allowed_tools, f"{param}.allowed_tools"
    for name, value in (("mode", choice.mode), ("tools", choice.tools)):
        if value is None:
            raise InvalidRequest("is required", field=f"{param}.{name}")
    assert choice.mode is not None and choice.tools is not None
    return AllowedToolList(choice.mode, choice.tools), param


def _allowed_names(
    named: AnyNamedTool, offered: Sequence[OfferedTool], path: str
) -> set[ClientName]:
    if isinstance(named, NamedHostedTool):
        return _hosted_names(named, offered, path)
    return {_known_name(named, offered, path)}


def _hosted_names(
    named: NamedHostedTool, offered: Sequence[OfferedTool], path: str
) -> set[ClientName]:
    """Returns the names of the functions of a chosen tool that this server runs.

    Raises InvalidRequest if the request has no such tool.
    """
    kind = str(named.__struct_config__.tag)
    names = {tool.name for tool in offered if tool.hosted_type == kind}
    if isinstance(named, NamedMcp):
        names = {
            name
            for name in names
            if name.namespace == named.server_label and named.name in (None, name.name)
        }
    if not names:
        given = kind
        if isinstance(named, NamedMcp):
            given = f"{kind} {named.server_label!r}" + (f" {named.name!r}" if named.name else "")
        raise InvalidRequest(f"must name one of the tools, given {given}", field=path)
    return names


def _known_name(
    named: NamedTool | NamedCustomTool, offered: Sequence[OfferedTool], path: str
) -> ClientName:
    """Returns the name of a chosen tool. A unique name needs no namespace.

    Raises InvalidRequest if the request has no such tool of that kind.
    """
    name, kind = named_tool(named), "custom" if isinstance(named, NamedCustomTool) else "function"
    if name is None:
        raise InvalidRequest(f"{path}.{kind} is required", param=path)
    of_kind = [tool.name for tool in offered if tool.is_custom == (kind == "custom")]
    if name in of_kind:
        return name
    having_name = [each for each in of_kind if each.name == name.name]
    if name.namespace is None and len(having_name) == 1:
        return having_name[0]
    given = name.name if name.namespace is None else f"{name.namespace}.{name.name}"
    raise InvalidRequest(f"must name one of the tools, given {given!r}", field=path)


def named_tool(named: NamedTool | NamedCustomTool) -> ClientName | None:
    """Returns the tool name of a choice, in either of its two forms."""
    inner = named.custom if isinstance(named, NamedCustomTool) else named.function
    name = inner.name if inner is not None else named.name
    return None if name is None else ClientName(name, named.namespace)
