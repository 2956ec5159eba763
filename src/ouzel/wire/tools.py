"""The request fields about tools, and what they come to: what the prompt shows, what may be called, what must be."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol, assert_never

import msgspec
from msgspec import Meta

from ouzel.errors import InvalidRequest
from ouzel.generation import ToolUse
from ouzel.types import FunctionTool
from ouzel.wire.validation_errors import shown

_MAX_TOOLS = 128

FunctionName = Annotated[
    str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:/-]+$", description="What the model calls it.")
]


class FunctionDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    name: FunctionName
    description: Annotated[str | None, Meta(description="When to call it, for the model.")] = None
    parameters: Annotated[dict[str, object] | None, Meta(description="JSON schema of the arguments.")] = None
    strict: Annotated[bool | None, Meta(description="The arguments obey the schema exactly.")] = None


class Tool(msgspec.Struct, frozen=True):
    """OpenAI's form; that of the Responses API, with the function's fields beside `type`, is understood as well."""

    type: Literal["function"]
    function: FunctionDefinition | None = None
    name: FunctionName | None = None
    description: str | None = None
    parameters: dict[str, object] | None = None
    strict: bool | None = None


class NamedFunction(msgspec.Struct, frozen=True):
    name: FunctionName


class NamedTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    function: NamedFunction | None = None
    name: FunctionName | None = None


AllowedMode = Annotated[Literal["auto", "required"], Meta(description="Whether one of them must be called.")]
AllowedNames = Annotated[list[NamedTool], Meta(min_length=1, description="Those of the tools that may be called.")]


class AllowedToolList(msgspec.Struct, frozen=True):
    mode: AllowedMode
    tools: AllowedNames


class AllowedTools(msgspec.Struct, frozen=True, tag_field="type", tag="allowed_tools"):
    """As `Tool`: in the form of the Responses API the list's fields stand beside `type`."""

    allowed_tools: Annotated[AllowedToolList | None, Meta(description="Some of the tools.")] = None
    mode: AllowedMode | None = None
    tools: AllowedNames | None = None


Tools = Annotated[list[Tool], Meta(max_length=_MAX_TOOLS, description="Functions that the model may call.")]
Choice = Literal["none", "auto", "required"] | NamedTool | AllowedTools
ToolChoice = Annotated[
    Choice | None,
    Meta(description="Whether the model may, or must, call a tool, or which; auto when there are tools."),
]
ParallelToolCalls = Annotated[bool | None, Meta(description="Several calls in one answer; true when not given.")]
GuidesTools = Annotated[
    bool | None, Meta(description="The arguments of every call obey their schema, as for strict functions.")
]
Functions = Annotated[
    list[FunctionDefinition], Meta(max_length=_MAX_TOOLS, description="The old name of tools; answers use it too.")
]
FunctionCall = Annotated[
    Literal["none", "auto"] | NamedFunction | None,
    Meta(description="The old name of tool_choice; belongs to functions."),
]


class ToolFields(Protocol):
    """What the bodies with tools have in common; a struct has one base only."""

    tools: list[Tool] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    enable_tool_guided_generation: bool | None
    functions: list[FunctionDefinition] | None
    function_call: Literal["none", "auto"] | NamedFunction | None


class AskedTools(msgspec.Struct, frozen=True):
    shown: list[dict[str, object]] | None  # to the model
    use: ToolUse | None  # None: there are none


def asked_tools(asked: ToolFields, *, guides_all: bool = False) -> AskedTools:
    """`guides_all`: where the request does not say. Raises InvalidRequest for what contradicts itself."""
    is_old = asked.functions is not None or asked.function_call is not None
    if is_old and (asked.tools is not None or asked.tool_choice is not None):
        field = "functions" if asked.functions is not None else "function_call"
        raise InvalidRequest(f"{field} must not be given beside tools or tool_choice", param=field)
    field = "functions" if is_old else "tools"
    functions = asked.functions or [] if is_old else _functions_of(asked.tools or [])
    _check_names(functions, field)
    _check_parameters(functions, field)
    choice = _choice_of(asked, is_old=is_old)
    if not functions and choice not in (None, "none", "auto"):
        param = "function_call" if is_old else "tool_choice"
        raise InvalidRequest(f"{param} needs {field}", param=param)
    if not functions:
        return AskedTools(None, None)
    if choice == "none":
        return AskedTools(None, ToolUse(tools=(), are_all=False, must_call=False, is_parallel=False, guides_all=False))
    names, must_call, is_single = _demanded(choice, functions, "function_call.name" if is_old else "tool_choice")
    use = ToolUse(
        tools=tuple(_function_tool(function) for function in functions if function.name in names),
        are_all=len(names) == len(functions),
        must_call=must_call,
        is_parallel=not (is_single or is_old) and asked.parallel_tool_calls is not False,
        guides_all=guides_all if asked.enable_tool_guided_generation is None else asked.enable_tool_guided_generation,
    )
    shown = [{"type": "function", "function": msgspec.to_builtins(function)} for function in functions]
    return AskedTools(shown, use)


def _functions_of(tools: Sequence[Tool]) -> list[FunctionDefinition]:
    functions: list[FunctionDefinition] = []
    for position, tool in enumerate(tools):
        if tool.function is not None:
            functions.append(tool.function)
        elif tool.name is not None:
            functions.append(FunctionDefinition(tool.name, tool.description, tool.parameters, tool.strict))
        else:
            raise InvalidRequest(f"tools[{position}].function is required", param=f"tools[{position}].function")
    return functions


def _check_parameters(functions: Sequence[FunctionDefinition], field: str) -> None:
    """Arguments are always an object."""
    for position, function in enumerate(functions):
        kind = (function.parameters or {}).get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            path = f"{_path(field, position)}.parameters.type"
            raise InvalidRequest(f'{path} must be "object", given {shown(kind)}', param=path)


def _path(field: str, position: int) -> str:
    return f"{field}[{position}]" + ("" if field == "functions" else ".function")


def _check_names(functions: Sequence[FunctionDefinition], field: str) -> None:
    names: set[str] = set()
    for position, function in enumerate(functions):
        if function.name in names:
            path = f"{_path(field, position)}.name"
            raise InvalidRequest(f"{path} must be unique, given {function.name!r} again", param=path)
        names.add(function.name)


def _choice_of(
    asked: ToolFields, *, is_old: bool
) -> Literal["none", "auto", "required"] | NamedTool | AllowedTools | None:
    if is_old:
        choice = asked.function_call
        return NamedTool(choice) if isinstance(choice, NamedFunction) else choice
    return asked.tool_choice


def _demanded(
    choice: Choice | None,
    functions: Sequence[FunctionDefinition],
    param: str,
) -> tuple[set[str], bool, bool]:
    """The names that may be called, whether one must be, and whether no more than one."""
    known = {function.name for function in functions}
    match choice:
        case None | "none" | "auto":
            return known, False, False
        case "required":
            return known, True, False
        case NamedTool():
            return {_known_name(choice, known, param)}, True, True
        case AllowedTools():
            allowed, path = _allowed(choice, param)
            names = {
                _known_name(tool, known, f"{path}.tools[{position}]") for position, tool in enumerate(allowed.tools)
            }
            return names, allowed.mode == "required", False
        case unreachable:
            assert_never(unreachable)


def _allowed(choice: AllowedTools, param: str) -> tuple[AllowedToolList, str]:
    """And where it stands in the request."""
    if choice.allowed_tools is not None:
        return choice.allowed_tools, f"{param}.allowed_tools"
    for name, value in (("mode", choice.mode), ("tools", choice.tools)):
        if value is None:
            raise InvalidRequest(f"{param}.{name} is required", param=f"{param}.{name}")
    assert choice.mode is not None and choice.tools is not None
    return AllowedToolList(choice.mode, choice.tools), param


def _known_name(named: NamedTool, known: set[str], path: str) -> str:
    name = named.function.name if named.function is not None else named.name
    if name is None:
        raise InvalidRequest(f"{path}.function is required", param=path)
    if name not in known:
        raise InvalidRequest(f"{path} must name one of the tools, given {name!r}", param=path)
    return name


def _function_tool(function: FunctionDefinition) -> FunctionTool:
    return FunctionTool(function.name, function.description, function.parameters, function.strict or False)
