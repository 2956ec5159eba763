"""Defines the items of MCP: lists of tools, calls, and approvals of calls, with their events."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from ouzel.responses.event_base import ItemEvent, Place, ResponseEvent
from ouzel.responses.hosted.citations import write_without_markers
from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

_REFUSED = "The user did not allow this call."


class ListedMcpTool(msgspec.Struct, frozen=True):
    name: str
    description: str | None
    input_schema: dict[str, object]
    annotations: dict[str, object] | None = None


class McpListTools(HostedItem, frozen=True, kw_only=True, tag="mcp_list_tools"):
    id_prefix = "mcpl"
    kind = "mcp"

    server_label: str
    tools: list[ListedMcpTool]
    error: str | None = None

    @property
    def is_silent(self) -> bool:
        return True

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield ListToolsInProgress(*place.next())

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield ListToolsCompleted(*place.next())


class McpCall(HostedItem, frozen=True, kw_only=True, tag="mcp_call"):
    id_prefix = "mcp"
    kind = "mcp"

    name: str
    server_label: str
    arguments: str
    status: Literal["in_progress", "completed", "incomplete", "calling", "failed"] = "completed"
    output: str | None = None
    # an object with `type`, of which this server makes one kind, or a text of an older server
    error: dict[str, object] | str | None = None
    approval_request_id: str | None = None

    @property
    def is_running(self) -> bool:
        return self.status in ("in_progress", "calling")

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def called_name(self) -> tuple[str, str | None]:
        return self.name, self.server_label

    def exchange(self) -> ToolExchange | None:
        text = self.output
        if text is None and self.error is not None:
            text = _error_text(self.error)
        if text is None:
            return None
        # The tool could make its words look as if they came from a page that was searched.
        text = write_without_markers(text)
        return ToolExchange(self.name, self.server_label, self.arguments, text)

    def fail(self, reason: str) -> "McpCall":
        content = [{"type": "text", "text": reason}]
        error: dict[str, object] = {"type": "mcp_tool_execution_error", "content": content}
        return replace(self, status="failed", output=None, error=error)

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield CallInProgress(*place.next())
        yield CallArgumentsDelta(*place.next(), delta=self.arguments)
        yield CallArgumentsDone(*place.next(), arguments=self.arguments)

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield (CallFailed if self.is_failed else CallCompleted)(*place.next())


def _error_text(error: dict[str, object] | str) -> str:
    """Returns the text of an error for the model."""
    if isinstance(error, str):
        return error
    content = error.get("content")
    if isinstance(content, list) and content and isinstance(content[0], dict):
        return str(content[0].get("text", ""))
    return str(error.get("message", ""))


class McpApprovalRequest(HostedItem, frozen=True, kw_only=True, tag="mcp_approval_request"):
    id_prefix = "mcpr"
    kind = "mcp"
    keeps_id = True

    name: str
    server_label: str
    arguments: str

    @property
    def waits_for_client(self) -> bool:
        return True

    @property
    def is_silent(self) -> bool:
        return True

    def called_name(self) -> tuple[str, str | None]:
        return self.name, self.server_label

    def refuse(self, reason: str | None) -> ToolExchange:
        """Returns the call as the model reads it after the client has refused it."""
        text = _REFUSED if not reason else f"{_REFUSED} The reason: {reason}"
        return ToolExchange(self.name, self.server_label, self.arguments, text)


class McpApprovalResponse(HostedItem, frozen=True, kw_only=True, tag="mcp_approval_response"):
    """The answer of a client to an approval request; an item of the input."""

    id_prefix = "mcpa"
    kind = "mcp"

    id: str = ""
    approval_request_id: str
    approve: bool
    reason: str | None = None

    @property
    def is_silent(self) -> bool:
        return True


class ListToolsInProgress(
    ItemEvent, frozen=True, kw_only=True, tag="response.mcp_list_tools.in_progress"
):
    pass


class ListToolsCompleted(
    ItemEvent, frozen=True, kw_only=True, tag="response.mcp_list_tools.completed"
):
    pass


class CallInProgress(ItemEvent, frozen=True, kw_only=True, tag="response.mcp_call.in_progress"):
    pass


class CallArgumentsDelta(
    ItemEvent, frozen=True, kw_only=True, tag="response.mcp_call_arguments.delta"
):
    delta: str


class CallArgumentsDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.mcp_call_arguments.done"
):
    arguments: str


class CallCompleted(ItemEvent, frozen=True, kw_only=True, tag="response.mcp_call.completed"):
    pass


class CallFailed(ItemEvent, frozen=True, kw_only=True, tag="response.mcp_call.failed"):
    pass


EVENTS: tuple[type[ResponseEvent], ...] = (
    ListToolsInProgress,
    ListToolsCompleted,
    CallInProgress,
    CallArgumentsDelta,
    CallArgumentsDone,
    CallCompleted,
    CallFailed,
)
