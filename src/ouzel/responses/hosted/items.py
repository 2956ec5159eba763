"""Lists all items of tools that this server runs; each kind has its own file in this folder."""

import msgspec

from ouzel.responses.event_base import ResponseEvent
from ouzel.responses.hosted import code_interpreter, file_search, mcp, web_search
from ouzel.responses.hosted.code_interpreter import CodeInterpreterCall
from ouzel.responses.hosted.file_search import FileSearchCall
from ouzel.responses.hosted.mcp import (
    McpApprovalRequest,
    McpApprovalResponse,
    McpCall,
    McpListTools,
)
from ouzel.responses.hosted.shell import ShellCall, ShellCallOutput
from ouzel.responses.hosted.web_fetch import WebFetchCall
from ouzel.responses.hosted.web_search import WebSearchCall

AnyHostedItem = (
    McpListTools
    | McpCall
    | McpApprovalRequest
    | McpApprovalResponse
    | WebSearchCall
    | WebFetchCall
    | FileSearchCall
    | CodeInterpreterCall
    | ShellCall
    | ShellCallOutput
)

EVENTS: tuple[type[ResponseEvent], ...] = (
    *mcp.EVENTS,
    *web_search.EVENTS,
    *file_search.EVENTS,
    *code_interpreter.EVENTS,
)


def read_hosted_item(fields: dict[str, object]) -> AnyHostedItem | None:
    """Reads an item that a client sends or the store has; None if it is not such an item.

    Clients send back items of this server and of others, which may lack fields: None for these.
    """
    try:
        item: AnyHostedItem = msgspec.convert(fields, AnyHostedItem)
        return item
    except msgspec.ValidationError:
        return None
