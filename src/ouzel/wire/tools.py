"""The request fields about tools come to what the prompt shows, what may be called, and what must be."""

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
    """The form is OpenAI's; that of the Responses API, with the function's fields beside `type`, is read as well."""

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
    """The bodies with tools have these in common; this is a protocol because a struct has one base only."""

    tools: list[Tool] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    enable_tool_guided_generation: bool | None
    functions: list[FunctionDefinition] | None
    function_call: Literal["none", "auto"] | NamedFunction | None


class RequestTools(msgspec.Struct, frozen=True):
    """Both are None where the request has no tools."""

    definitions: list[dict[str, object]] | None  # as the prompt shows them
    use: ToolUse | None  # what may come of them


class _FunctionFields(msgspec.Struct, frozen=True):
    """A request names functions, and the choice among them, by new or by old names; this holds either."""

    functions: list[FunctionDefinition]
    choice: Choice | None
    field: str  # the name of the functions' field, and so the next
    choice_field: str

    @property
    def is_old(self) -> bool:
        return self.field == "functions"


def tools_of(body: ToolFields, *, guides_all: bool = False) -> RequestTools:
    """Raises InvalidRequest for what contradicts itself. `guides_all` counts where the request does not say."""
    fields = _function_fields(body)
    _check_names(fields.functions, fields.field)
    _check_parameters(fields.functions, fields.field)
    if not fields.functions:
        if fields.choice not in (None, "none", "auto"):
            raise InvalidRequest(f"needs {fields.field}", field=fields.choice_field)
        return RequestTools(None, None)
    if fields.choice == "none":
        use = ToolUse(tools=(), are_all=False, must_call=False, is_parallel=False, guides_all=False)
        return RequestTools(None, use)
    own_guides = body.enable_tool_guided_generation
    definitions = [{"type": "function", "function": msgspec.to_builtins(function)} for function in fields.functions]
    use = _use(
        fields,
        is_parallel=not fields.is_old and body.parallel_tool_calls is not False,
        guides_all=guides_all if own_guides is None else own_guides,
    )
    return RequestTools(definitions, use)


def _function_fields(body: ToolFields) -> _FunctionFields:
    if body.functions is None and body.function_call is None:
        return _FunctionFields(_functions_of(body.tools or []), body.tool_choice, "tools", "tool_choice")
    if body.tools is not None or body.tool_choice is not None:
        field = "functions" if body.functions is not None else "function_call"
        raise InvalidRequest("must not be given beside tools or tool_choice", field=field)
    choice = body.function_call
    named = NamedTool(choice) if isinstance(choice, NamedFunction) else choice
    return _FunctionFields(body.functions or [], named, "functions", "function_call")


def _use(fields: _FunctionFields, *, is_parallel: bool, guides_all: bool) -> ToolUse:
    functions = fields.functions
    param = "function_call.name" if fields.is_old else fields.choice_field
    names, must_call, is_single = _callable_names(fields.choice, functions, param)
    return ToolUse(
        tools=tuple(_function_tool(function) for function in functions if function.name in names),
        are_all=len(names) == len(functions),
        must_call=must_call,
        is_parallel=is_parallel and not is_single,
        guides_all=guides_all,
    )


def _functions_of(tools: Sequence[Tool]) -> list[FunctionDefinition]:
    functions: list[FunctionDefinition] = []
    for position, tool in enumerate(tools):
        if tool.function is not None:
            functions.append(tool.function)
        elif tool.name is not None:
            functions.append(FunctionDefinition(tool.name, tool.description, tool.parameters, tool.strict))
        else:
            raise InvalidRequest("is required", field=f"tools[{position}].function")
    return functions


def _check_parameters(functions: Sequence[FunctionDefinition], field: str) -> None:
    """Arguments are always an object."""
    for position, function in enumerate(functions):
        kind = (function.parameters or {}).get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            path = f"{_path(field, position)}.parameters.type"
            raise InvalidRequest(f'must be "object", given {shown(kind)}', field=path)


def _path(field: str, position: int) -> str:
    return f"{field}[{position}]" + ("" if field == "functions" else ".function")


def _check_names(functions: Sequence[FunctionDefinition], field: str) -> None:
    names: set[str] = set()
    for position, function in enumerate(functions):
        if function.name in names:
            path = f"{_path(field, position)}.name"
            raise InvalidRequest(f"must be unique, given {function.name!r} again", field=path)
        names.add(function.name)


def _callable_names(
    choice: Choice | None,
    functions: Sequence[FunctionDefinition],
    param: str,
) -> tuple[set[str], bool, bool]:
    """Returns the names that may be called, whether one must be, and whether no more than one."""
    known_names = {function.name for function in functions}
    match choice:
        case None | "none" | "auto":
            return known_names, False, False
        case "required":
            return known_names, True, False
        case NamedTool():
            return {_known_name(choice, known_names, param)}, True, True
        case AllowedTools():
            allowed_list, path = _allowed_list(choice, param)
            names = {
                _known_name(tool, known_names, f"{path}.tools[{position}]")
                for position, tool in enumerate(allowed_list.tools)
            }
            return names, allowed_list.mode == "required", False
        case unreachable:
            assert_never(unreachable)


def _allowed_list(choice: AllowedTools, param: str) -> tuple[AllowedToolList, str]:
    """Returns the list, and where it stands in the request."""
    if choice.allowed_tools is not None:
        return choice.allowed_tools, f"{param}.allowed_tools"
    for name, value in (("mode", choice.mode), ("tools", choice.tools)):
        if value is None:
            raise InvalidRequest("is required", field=f"{param}.{name}")
    assert choice.mode is not None and choice.tools is not None
    return AllowedToolList(choice.mode, choice.tools), param


def _known_name(named: NamedTool, known_names: set[str], path: str) -> str:
    name = named.function.name if named.function is not None else named.name
    if name is None:
        raise InvalidRequest(f"{path}.function is required", param=path)
    if name not in known_names:
        raise InvalidRequest(f"must name one of the tools, given {name!r}", field=path)
    return name


def _function_tool(function: FunctionDefinition) -> FunctionTool:
    return FunctionTool(function.name, function.description, function.parameters, function.strict or False)
