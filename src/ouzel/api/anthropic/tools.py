"""Turns the tools of a request into functions, and its choice into ours.

Tools that run on Anthropic's servers run here if hosted_tools.py reads them. Others are left out if
the request has further tools, or refused, as `--unknown-tools` says. Anthropic's client tools have
no schema in the request; they get theirs from built_in_tools.py. A client tool of an unknown type
is refused, because the client needs it.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, assert_never

import msgspec
from msgspec import Meta

from ouzel.api.anthropic.built_in_tools import BUILT_IN_TYPES, built_in_function, check_name
from ouzel.api.anthropic.cache_control import CacheControl
from ouzel.api.anthropic.hosted_tools import (
    NO_HOSTED_TOOLSET,
    HostedToolFields,
    HostedToolset,
)
from ouzel.errors import InvalidRequest
from ouzel.wire.tools import (
    MAX_TOOLS,
    Choice,
    FunctionDefinition,
    FunctionName,
    NamedFunction,
    NamedTool,
    Tool,
)
from ouzel.wire.unknown_tools import UnknownTool, leave_out
from ouzel.wire.validation_errors import show_value

_HOSTED = (
    "web_search_",
    "web_fetch_",
    "code_execution_",
    "tool_search_tool_",
    "mcp_toolset",
    "advisor_",
)
_KNOWN_TYPES = ("custom", *BUILT_IN_TYPES)
_DIRECT = "direct"


class ClientTool(HostedToolFields, frozen=True, kw_only=True):
    """A tool of any kind. Anthropic's own kinds have more fields."""

    name: Annotated[
        FunctionName | None, Meta(description="The name by which the model calls the tool.")
    ] = None
    description: Annotated[
        str | None, Meta(description="Tells the model when to call the tool.")
    ] = None
    input_schema: Annotated[
        dict[str, object] | None, Meta(description="JSON schema of the input: an object.")
    ] = None
    strict: Annotated[bool | None, Meta(description="The input matches the schema exactly.")] = None
    input_examples: Annotated[
        list[dict[str, object]] | None,
        Meta(description="Shown to the model, as the schema's `examples`."),
    ] = None
    defer_loading: Annotated[
        bool | None, Meta(description="Not used: the model sees all tools from the start.")
    ] = None
    eager_input_streaming: Annotated[
        bool | None, Meta(description="Not used: the input is streamed as the model writes it.")
    ] = None
    cache_control: CacheControl = None
    display_width_px: (
        Annotated[int, Meta(ge=1, description="For computer_…: the screen's width.")] | None
    ) = None
    display_height_px: (
        Annotated[int, Meta(ge=1, description="For computer_…: the screen's height.")] | None
    ) = None
    display_number: (
        Annotated[
            int, Meta(ge=0, description="For computer_…: the display's number, for the model.")
        ]
        | None
    ) = None
    enable_zoom: Annotated[
        bool | None, Meta(description="For computer_20251124: adds a zoom action.")
    ] = None
    max_characters: (
        Annotated[
            int,
            Meta(
                ge=1,
                description="For text_editor_20250728: most characters in a view, for the model.",
            ),
        ]
        | None
    ) = None


OneAtMost = Annotated[bool | None, Meta(description="One call at most in the answer.")]


class AutoChoice(msgspec.Struct, frozen=True, tag="auto"):
    disable_parallel_tool_use: OneAtMost = None


class AnyChoice(msgspec.Struct, frozen=True, tag="any"):
    disable_parallel_tool_use: OneAtMost = None


class OneToolChoice(msgspec.Struct, frozen=True, tag="tool"):
    name: FunctionName
    disable_parallel_tool_use: OneAtMost = None


class NoneChoice(msgspec.Struct, frozen=True, tag="none"):
    disable_parallel_tool_use: Annotated[bool | None, Meta(description="Not used.")] = None


ToolList = Annotated[
    list[ClientTool], Meta(max_length=MAX_TOOLS, description="The tools that the model may call.")
]
ToolChoice = Annotated[
    AutoChoice | AnyChoice | OneToolChoice | NoneChoice | None,
    Meta(
        description="Whether the model may or must call a tool, or the tool it must call; "
        "auto if the request has tools."
    ),
]


def read_functions(
    tools: Sequence[ClientTool],
    mcp_servers: Sequence[object],
    *,
    refuses_hosted: bool,
    toolset: HostedToolset = NO_HOSTED_TOOLSET,
    hints: Mapping[str, str] | None = None,
) -> tuple[list[Tool], tuple[str, ...]]:
    """Returns the functions of `tools`, and a warning for each tool that is left out.

    This server runs the tools of `toolset`. Further tools of Anthropic's servers are left out;
    `hints` tell how the operator turns them on. Raises InvalidRequest for a tool that the
    model could not call.
    """
    functions: list[Tool] = []
    runs_mcp = any(path.startswith("mcp_servers") for path, _ in toolset.entries)
    hosted = [UnknownTool("mcp_servers", None)] if mcp_servers and not runs_mcp else []
    names: set[str] = set()
    for position, tool in enumerate(tools):
        path = f"tools[{position}]"
        if position in toolset.positions:
            continue
        if tool.type is not None and tool.type.startswith(_HOSTED):
            hosted.append(UnknownTool(path, tool.type))
            continue
        function = _make_function(tool, path)
        if function.name in names:
            raise InvalidRequest(
                f"must be unique, given {function.name!r} again", field=f"{path}.name"
            )
        names.add(function.name)
        functions.append(Tool("function", function))
    warnings = leave_out(
        hosted,
        known=_KNOWN_TYPES,
        has_others=bool(functions or toolset.entries),
        refuses=refuses_hosted,
        hints=hints,
    )
    return functions, warnings


def _make_function(tool: ClientTool, path: str) -> FunctionDefinition:
    if tool.allowed_callers is not None and _DIRECT not in tool.allowed_callers:
        given = show_value(tool.allowed_callers)
        raise InvalidRequest(
            f'must have "{_DIRECT}", given {given}', field=f"{path}.allowed_callers"
        )
    function = (
        _make_custom(tool, path) if tool.type in (None, "custom") else _make_built_in(tool, path)
    )
    assert function.parameters is not None
    if tool.input_examples:
        schema = {"examples": tool.input_examples, **function.parameters}
        return msgspec.structs.replace(function, parameters=schema)
    return function


def _make_custom(tool: ClientTool, path: str) -> FunctionDefinition:
    for name, value in (("name", tool.name), ("input_schema", tool.input_schema)):
        if value is None:
            raise InvalidRequest("is required", field=f"{path}.{name}")
    assert tool.name is not None and tool.input_schema is not None
    kind = tool.input_schema.get("type")
    if kind != "object":
        raise InvalidRequest(
            f'must be "object", given {show_value(kind)}', field=f"{path}.input_schema.type"
        )
    return FunctionDefinition(tool.name, tool.description, tool.input_schema, tool.strict)


def _make_built_in(tool: ClientTool, path: str) -> FunctionDefinition:
    assert tool.type is not None
    function = built_in_function(tool.type, tool, path)
    if function is None:
        known = ", ".join(map(show_value, _KNOWN_TYPES))
        why = (
            "the schema of this type is not known here; give the tool as a custom one, "
            "with an input_schema"
        )
        raise InvalidRequest(
            f"must be one of {known}, given {show_value(tool.type)}: {why}", field=f"{path}.type"
        )
    check_name(tool.name, function, path)
    if tool.input_schema is not None:
        limit = f"must not be given: tools of the type {tool.type} have a schema of their own"
        raise InvalidRequest(limit, field=f"{path}.input_schema")
    return (
        function
        if tool.description is None
        else msgspec.structs.replace(function, description=tool.description)
    )


def relax_choice(
    choice: AutoChoice | AnyChoice | OneToolChoice | NoneChoice | None,
) -> AutoChoice | NoneChoice | None:
    """Returns the choice of later turns, in which no call is demanded."""
    match choice:
        case AnyChoice(is_single) | OneToolChoice(_, is_single):
            return AutoChoice(is_single)
        case other:
            return other


def read_choice(
    choice: AutoChoice | AnyChoice | OneToolChoice | NoneChoice | None,
) -> tuple[Choice | None, bool | None]:
    """Returns the choice in OpenAI's form, and whether an answer may have several calls."""
    kind: Literal["auto", "required", "none"] | NamedTool
    match choice:
        case None:
            return None, None
        case AutoChoice():
            kind = "auto"
        case AnyChoice():
            kind = "required"
        case OneToolChoice(name=name):
            kind = NamedTool(NamedFunction(name))
        case NoneChoice():
            kind = "none"
        case unreachable:
            assert_never(unreachable)
    return kind, False if choice.disable_parallel_tool_use else None
