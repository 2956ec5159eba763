"""Collects an answer from the events of a streamed response, which may call tools by itself."""

from dataclasses import dataclass, field
from typing import Any  # the JSON of items

import msgspec

from ouzel.client.base import UNREADABLE, ApiFailure
from ouzel.client.chat_chunks import read_error
from ouzel.terminal_chat.answer import (
    Answer,
    ApprovalRequest,
    Piece,
    ToolCall,
    ToolNote,
    Usage,
)
from ouzel.terminal_chat.response_body import ITEMS

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")
_LAST = ("response.completed", "response.incomplete", "response.failed", "error")
_STOPPED = "The user stopped this call. It is unknown whether it had an effect."
_Item = dict[str, Any]


class _Details(msgspec.Struct):
    cached_tokens: int = 0


class _ResponseUsage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None


class _Reason(msgspec.Struct):
    reason: str = ""


class _Response(msgspec.Struct):
    usage: msgspec.Raw = msgspec.Raw(b"null")
    incomplete_details: _Reason | None = None
    error: Any = None


class _Event(msgspec.Struct):
    type: str
    delta: str = ""
    item_id: str = ""
    arguments: str = ""
    item: _Item | None = None
    response: _Response | None = None
    error: Any = None  # other servers put the message of an error here
    message: str = ""


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_usage = msgspec.json.Decoder(_ResponseUsage | None).decode


@dataclass(slots=True)
class ResponseAnswer(Answer):
    """Collects the answer of a response; `items` are the items that have ended."""

    items: list[_Item] = field(default_factory=list)
    # Text of the message that is being received.
    _growing: str = ""
    # Id -> call of an MCP tool that has begun and not ended.
    _running: dict[str, _Item] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.content and not self.approved_ids and not self._running

    @property
    def approved_ids(self) -> set[str]:
        """Returns the ids of the approval requests whose calls have begun."""
        calls = [*self.items, *self._running.values()]
        return {item.get("approval_request_id") or "" for item in calls if _is_call(item)}

    def is_last(self, event: bytes) -> bool:
        """Tells whether the event ends the response: servers may send no other mark."""
        try:
            return _decode_event(event).type in _LAST
        except UNREADABLE:
            return True  # reading it again tells the failure

    def feed(self, event: bytes) -> Piece:
        """Adds an event. Raises ApiFailure for a failed response or an unreadable event."""
        try:
            return self._take(_decode_event(event))
        except (*UNREADABLE, LookupError, TypeError) as error:
            raise ApiFailure(
                f"the server sent an unreadable event of a response: {error}"
            ) from error

    def message(self) -> dict[str, object]:
        """Returns the message for the conversation, with the items of the response.

        Calls that run when the user stops the answer are failed calls: they must not run again.
        """
        message = Answer.message(self)
        items = list(self.items)
        if self.is_stopped:
            items = [item for item in items if item["type"] != "function_call"]
            items += [_fail(call) for call in self._running.values()]
            if self._growing:
                content = [{"type": "output_text", "text": self._growing, "annotations": []}]
                items.append({"type": "message", "role": "assistant", "content": content})
        return {**message, ITEMS: items}

    def _take(self, event: _Event) -> Piece:
        piece = Piece()
        if event.type in _TEXT:
            # Two messages of one response are two paragraphs.
            gap = "\n\n" if self.content and not self._growing else ""
            piece = Piece(content=gap + event.delta)
            self._growing += event.delta
        elif event.type in _REASONING:
            piece = Piece(reasoning=event.delta)
        elif event.type == "response.output_item.added" and event.item:
            if _is_call(event.item):
                self._running[event.item["id"]] = event.item
        elif event.type == "response.mcp_call_arguments.done":
            piece = Piece(notes=self._begin_call(event))
        elif event.type == "response.output_item.done" and event.item:
            piece = Piece(notes=self._end_item(event.item))
        elif event.type in _LAST:
            self._end(event)
        self.content += piece.content
        self.reasoning += piece.reasoning
        if piece != Piece():
            self.tick()
        return piece

    def _begin_call(self, event: _Event) -> tuple[ToolNote, ...]:
        call = self._running.get(event.item_id)
        if call is None:
            return ()
        call["arguments"] = event.arguments
        if call.get("approval_request_id"):
            return ()  # the user has seen the call
        return (ToolNote(f"{call['server_label']}.{call['name']}", arguments=event.arguments),)

    def _end_item(self, item: _Item) -> tuple[ToolNote, ...]:
        self.items.append(item)
        self._running.pop(item.get("id", ""), None)
        match item["type"]:
            case "message":
                self._growing = ""
            case "function_call":
                self.tool_calls.append(ToolCall(item["call_id"], item["name"], item["arguments"]))
                self.tick()
            case "mcp_approval_request":
                self.approval_requests.append(
                    ApprovalRequest(
                        item["id"], item["server_label"], item["name"], item["arguments"]
                    )
                )
            case "mcp_list_tools":
                names = ", ".join(tool["name"] for tool in item["tools"])
                return (ToolNote(item["server_label"], result=f"tools: {names or 'none'}"),)
            case "mcp_call":
                name = f"{item['server_label']}.{item['name']}"
                return (ToolNote(name, result=_read_result(item)),)
        return ()

    def _end(self, event: _Event) -> None:
        """Takes the last event. Raises ApiFailure if the response failed."""
        response = event.response
        if response is None or event.type in ("response.failed", "error"):
            error = event.error or event.message or (response and response.error)
            raise ApiFailure(read_error(error))
        reason = response.incomplete_details and response.incomplete_details.reason
        is_long = reason in ("max_output_tokens", "max_tokens")
        self.finish_reason = "stop" if not reason else "length" if is_long else reason
        self.usage_json = response.usage
        if usage := _decode_usage(response.usage):
            details = usage.input_tokens_details
            cached = details.cached_tokens if details else 0
            self.usage = Usage.count_tokens(usage.input_tokens, usage.output_tokens, cached)


def _is_call(item: _Item) -> bool:
    return bool(item["type"] == "mcp_call")


def _read_result(call: _Item) -> str:
    """Returns the output of a call, or its error, as one text."""
    error = call.get("error")
    if error is None:
        return str(call.get("output") or "")
    if isinstance(error, dict) and isinstance(content := error.get("content"), list):
        error = " ".join(str(part.get("text", "")) for part in content)
    elif isinstance(error, dict):
        error = error.get("message", error)
    return f"error: {error}"


def _fail(call: _Item) -> _Item:
    content = [{"type": "text", "text": _STOPPED}]
    error = {"type": "mcp_tool_execution_error", "content": content}
    return {**call, "status": "failed", "error": error}
