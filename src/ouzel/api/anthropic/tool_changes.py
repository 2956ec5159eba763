"""Applies the changes of tools in system messages in the middle of a chat.

The prompt shows the tools after all changes: chat templates have one place for tools, before the
messages.
"""

import re
from collections.abc import Iterator, Sequence

from ouzel.api.anthropic.blocks import (
    ChangedTool,
    DefinedTool,
    Message,
    SystemMessage,
    TextBlock,
    ToolAdditionBlock,
    ToolRemovalBlock,
)
from ouzel.api.anthropic.tools import ClientTool, read_functions
from ouzel.errors import InvalidRequest
from ouzel.wire.tools import Tool
from ouzel.wire.validation_errors import show_value

_FIRST_TOOL = re.compile(r"tools\[0\]")


def apply_tool_changes(
    functions: Sequence[Tool],
    declared: Sequence[ClientTool],
    messages: Sequence[Message],
    *,
    refuses_hosted: bool,
) -> list[Tool]:
    """Returns the tools that the model may call after the last message.

    `declared` are the tools in the request; `functions` are the callable ones. Raises
    InvalidRequest for a change of an unknown tool.
    """
    known = {_name(tool): tool for tool in functions}
    available = dict(known)
    # tools that run on Anthropic's servers
    left_out = {tool.name for tool in declared} - known.keys()
    for path, block in _changes(messages):
        match block:
            case ToolAdditionBlock(tool=ChangedTool(name=name)) if name in known:
                available[name] = known[name]
            case ToolRemovalBlock(tool=ChangedTool(name=name)) if name in known:
                available.pop(name, None)
            case (
                ToolAdditionBlock(tool=ChangedTool(name=name))
                | ToolRemovalBlock(tool=ChangedTool(name=name))
            ):
                if name not in left_out:
                    raise InvalidRequest(
                        f"must name one of the tools, given {show_value(name)}",
                        field=f"{path}.tool.name",
                    )
            case ToolAdditionBlock(tool=DefinedTool(definition=definition)):
                tool = _make_function(
                    definition, f"{path}.tool.definition", refuses_hosted=refuses_hosted
                )
                known[_name(tool)] = available[_name(tool)] = tool
    return list(available.values())


def _changes(
    messages: Sequence[Message],
) -> Iterator[tuple[str, ToolAdditionBlock | ToolRemovalBlock]]:
    for position, message in enumerate(messages):
        if isinstance(message, SystemMessage) and not isinstance(message.content, str):
            for number, block in enumerate(message.content):
                if not isinstance(block, TextBlock):
                    yield f"messages[{position}].content[{number}]", block


def _make_function(definition: ClientTool, path: str, *, refuses_hosted: bool) -> Tool:
    try:
        [function], _ = read_functions([definition], (), refuses_hosted=refuses_hosted)
    except InvalidRequest as error:
        raise error.at(_FIRST_TOOL.sub(path, error.param or path, count=1)) from error
    return function


def _name(tool: Tool) -> str:
    assert tool.function is not None
    return tool.function.name
