"""Turns the tools of a request, in all their forms, into functions with unique names for the model.

A tool in a namespace keeps its own name if no other tool has that name; else the model knows it as
`namespace__name`. The client always reads name and namespace apart.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from ouzel.errors import InvalidRequest
from ouzel.types.tools import CUSTOM_ARGUMENT, FunctionTool, TextGrammar
from ouzel.wire.tools import (
    MAX_TOOLS,
    AnyText,
    CustomDefinition,
    CustomFormat,
    FunctionDefinition,
    ListedTool,
    TextOfGrammar,
    Tool,
)
from ouzel.wire.unknown_tools import UnknownTool, leave_out
from ouzel.wire.validation_errors import show_value


class ClientName(msgspec.Struct, frozen=True):
    """The name and namespace by which a client knows a tool."""

    name: str
    namespace: str | None = None


class OfferedTool(msgspec.Struct, frozen=True):
    name: ClientName
    path: str  # the path of the tool's definition in the request
    description: str | None
    parameters: dict[str, object] | None
    strict: bool | None = None
    is_custom: bool = False
    text_grammar: TextGrammar | None = None
    hosted_type: str | None = None  # the type of the tool if this server runs it

    def definition(self, model_name: str) -> dict[str, object]:
        """Returns the tool's definition for the prompt."""
        function = FunctionDefinition(model_name, self.description, self.parameters, self.strict)
        return {"type": "function", "function": msgspec.to_builtins(function)}

    def tool(self, model_name: str) -> FunctionTool:
        return FunctionTool(
            model_name,
            self.description,
            self.parameters,
            self.strict or False,
            self.is_custom,
            self.text_grammar,
            is_foreign=self.hosted_type is not None,
        )


class HostedOffer(msgspec.Struct, frozen=True):
    """The tools of a request that this server runs."""

    types: frozenset[str] = frozenset()  # the types of such tools in the field `tools`
    functions: tuple[OfferedTool, ...] = ()  # the functions by which the model calls these tools
    # maps the type of a tool that is turned off to a hint for the operator
    hints: Mapping[str, str] = {}


NO_HOSTED_TOOLS = HostedOffer()


class ToolNames(msgspec.Struct, frozen=True):
    """Translates tool names between model and client.

    A name without an entry is the same for both.
    """

    of_client: dict[str, ClientName] = {}  # the client's names by the model's names
    of_model: dict[ClientName, str] = {}  # the model's names by the client's names

    def for_client(self, model_name: str) -> ClientName:
        return self.of_client.get(model_name) or ClientName(model_name)

    def for_model(self, name: ClientName) -> str:
        return self.of_model.get(name, name.name)


NO_TOOLS = ToolNames()


def offered_tools(
    tools: Sequence[Tool], *, refuses_unknown: bool, hosted: HostedOffer = NO_HOSTED_TOOLS
) -> tuple[list[OfferedTool], tuple[str, ...]]:
    """Returns the tools that the model may call, and a warning for each tool that is left out.

    Raises InvalidRequest for a refused tool, and for more than `MAX_TOOLS` tools.
    """
    known = [(f"tools[{position}]", tool) for position, tool in enumerate(tools) if tool.is_known]
    unknown = [
        UnknownTool(f"tools[{position}]", tool.type)
        for position, tool in enumerate(tools)
        if not tool.is_known and tool.type not in hosted.types
    ]
    types = (*tools[0].known_types, *sorted(hosted.types)) if tools else ()
    warnings = leave_out(
        unknown,
        known=types,
        has_others=len(unknown) < len(tools),
        refuses=refuses_unknown,
        hints=hosted.hints,
    )
    offered = [each for path, tool in known for each in _offer(tool, path)]
    offered += hosted.functions
    if len(offered) > MAX_TOOLS:
        what = (
            f"must have a length <= {MAX_TOOLS} with the tools of all namespaces, "
            f"given {len(offered)}"
        )
        raise InvalidRequest(what, field="tools")
    return offered, warnings


def offer_function(
    function: FunctionDefinition, path: str, namespace: str | None = None
) -> OfferedTool:
    kind = (function.parameters or {}).get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise InvalidRequest(
            f'must be "object", given {show_value(kind)}', field=f"{path}.parameters.type"
        )
    name = ClientName(function.name, namespace)
    return OfferedTool(name, path, function.description, function.parameters, function.strict)


def assign_names(offered: Sequence[OfferedTool]) -> ToolNames:
    """Chooses the model's name of each tool. Raises InvalidRequest if two tools have one name."""
    counts = Counter(tool.name.name for tool in offered)
    of_client: dict[str, ClientName] = {}
    for tool in offered:
        name, namespace = tool.name.name, tool.name.namespace
        model_name = name if namespace is None or counts[name] == 1 else f"{namespace}__{name}"
        if model_name in of_client:
            raise InvalidRequest(
                f"must be unique, given {model_name!r} again", field=f"{tool.path}.name"
            )
        of_client[model_name] = tool.name
    return ToolNames(of_client, {name: model_name for model_name, name in of_client.items()})


def _offer(tool: Tool, path: str, namespace: str | None = None) -> Iterator[OfferedTool]:
    match tool.type:
        case "function":
            yield offer_function(*_find_function(tool, path), namespace)
        case "custom":
            yield _offer_custom(*_find_custom(tool, path), namespace)
        case "namespace" if isinstance(tool, ListedTool):
            yield from _offer_namespace(tool, path)
        case _:  # only inside a namespace: unknown types at the top were left out before
            known = ", ".join(map(show_value, tool.known_types))
            what = f"must be one of {known}, given {show_value(tool.type)}"
            raise InvalidRequest(what, field=f"{path}.type")


def _offer_namespace(tool: ListedTool, path: str) -> Iterator[OfferedTool]:
    if tool.name is None or tool.tools is None:
        raise InvalidRequest("is required", field=f"{path}.{'tools' if tool.name else 'name'}")
    inner = [
        each
        for position, one in enumerate(tool.tools)
        for each in _offer(one, f"{path}.tools[{position}]", tool.name)
    ]
    # The model sees no namespaces: the namespace's description goes to its first tool.
    if tool.description and inner:
        head = f"[{tool.name}: {tool.description}]"
        first = f"{head}\n{inner[0].description}" if inner[0].description else head
        inner[0] = msgspec.structs.replace(inner[0], description=first)
    yield from inner


def _find_function(tool: Tool, path: str) -> tuple[FunctionDefinition, str]:
    if tool.function is not None:
        return tool.function, f"{path}.function"
    if tool.name is None:
        raise InvalidRequest("is required", field=f"{path}.function")
    return FunctionDefinition(tool.name, tool.description, tool.parameters, tool.strict), path


def _find_custom(tool: Tool, path: str) -> tuple[CustomDefinition, str]:
    if tool.custom is not None:
        return tool.custom, f"{path}.custom"
    if tool.name is None:
        raise InvalidRequest("is required", field=f"{path}.custom")
    return CustomDefinition(tool.name, tool.description, tool.format), path


def _offer_custom(custom: CustomDefinition, path: str, namespace: str | None) -> OfferedTool:
    grammar = _text_grammar(custom.format, f"{path}.format")
    rule = (
        f"It must match this {grammar.syntax} grammar:\n{grammar.definition}"
        if grammar
        else "It is free text."
    )
    return OfferedTool(
        ClientName(custom.name, namespace),
        path,
        custom.description,
        {
            "type": "object",
            "properties": {
                CUSTOM_ARGUMENT: {"type": "string", "description": f"The whole input. {rule}"}
            },
            "required": [CUSTOM_ARGUMENT],
            "additionalProperties": False,
        },
        is_custom=True,
        text_grammar=grammar,
    )


def _text_grammar(format: CustomFormat, path: str) -> TextGrammar | None:
    match format:
        case None | AnyText():
            return None
        case TextOfGrammar(grammar=None, syntax=syntax, definition=definition):
            if syntax is None or definition is None:
                raise InvalidRequest(
                    "is required", field=f"{path}.{'definition' if syntax else 'syntax'}"
                )
            return TextGrammar(syntax, definition)
        case TextOfGrammar(grammar=grammar):
            assert grammar is not None
            return TextGrammar(grammar.syntax, grammar.definition)
        case unreachable:
            assert_never(unreachable)
