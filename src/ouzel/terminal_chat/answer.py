"""Collects an answer from the chunks of a streamed chat completion."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from ouzel.client.base import UNREADABLE, ApiFailure
from ouzel.client.chat_chunks import ChatDelta, decode_chat_chunk


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int:
        return (self.prompt_tokens_details and self.prompt_tokens_details.cached_tokens) or 0

    @classmethod
    def count_tokens(cls, prompt: int, completion: int, cached: int) -> "Usage":
        return cls(prompt, completion, _PromptDetails(cached))


_decode_call = msgspec.json.Decoder(_Call).decode


@dataclass(slots=True)
class ToolCall:
    id: str = ""
    name: str = ""
    arguments: str = ""

    def on_the_wire(self) -> dict[str, object]:
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call of an MCP tool, which the server runs after the user has allowed it."""

    id: str
    server_label: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolNote:
    """News of a tool that the server runs: a call with its arguments, or else a result."""

    name: str
    arguments: str | None = None
    result: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that a chunk adds to the answer, and the news of tools before the text."""

    reasoning: str = ""
    content: str = ""
    notes: tuple[ToolNote, ...] = ()


@dataclass(slots=True)
class Answer:
    """Collects the answer; its fields change while chunks arrive."""

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    approval_requests: list[ApprovalRequest] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None
    usage_json: msgspec.Raw | None = None  # the usage with all fields of the server
    is_stopped: bool = False  # the user has stopped the answer
    begin_s: float = field(default_factory=time.perf_counter)
    first_s: float | None = None  # time of the first text or call
    end_s: float | None = None
    # Index of a call in the stream -> the call that is being received.
    _growing_calls: dict[int, ToolCall] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Tells whether the answer has ended.

        Some servers send no finish reason; then the usage, which comes last, marks the end.
        """
        return self.is_stopped or self.finish_reason is not None or self.usage is not None

    def feed(self, event: bytes) -> Piece:
        """Adds a chunk. Raises ApiFailure for an error of the server or an unreadable chunk."""
        try:
            chunk = decode_chat_chunk(event)
            if chunk.error_text:
                raise ApiFailure(chunk.error_text)
            if chunk.has_usage:
                self._count(chunk.usage)
            self.finish_reason = chunk.choice.finish_reason or self.finish_reason
            return self._add(chunk.choice.delta or ChatDelta())
        except UNREADABLE as error:
            raise ApiFailure(
                f"the server sent an unreadable chunk of a chat completion: {error}"
            ) from error

    def is_last(self, event: bytes) -> bool:
        """Tells whether no event follows; the stream of a chat completion has its own end."""
        return False

    @property
    def is_empty(self) -> bool:
        """Tells whether nothing of a stopped answer is worth keeping."""
        return not self.content

    @property
    def approved_ids(self) -> set[str]:
        """Returns the ids of the approval requests whose calls have begun."""
        return set()

    def tick(self) -> None:
        """Notes the time of the first text or call."""
        if self.first_s is None:
            self.first_s = time.perf_counter()

    def end(self) -> None:
        self.end_s = time.perf_counter()

    def message(self) -> dict[str, object]:
        """Returns the message for the conversation; calls of a stopped answer are left out."""
        message: dict[str, object] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls and not self.is_stopped:
            message["tool_calls"] = [call.on_the_wire() for call in self.tool_calls]
        elif not self.content:
            message["content"] = ""
        return message

    def _add(self, delta: ChatDelta) -> Piece:
        content, reasoning = delta.texts()
        self.content += content
        self.reasoning += reasoning
        for part in delta.tool_calls or ():
            self._add_to_call(_decode_call(part))
        if reasoning or content or delta.tool_calls:
            self.tick()
        return Piece(reasoning, content)

    def _count(self, usage: msgspec.Raw) -> None:
        """Stores the usage; a usage with unreadable fields is no reason to lose an answer."""
        self.usage_json = usage
        with suppress(*UNREADABLE):
            self.usage = msgspec.json.decode(usage, type=Usage)

    def _add_to_call(self, part: _Call) -> None:
        function = part.function or _Function()
        call = self._find_call(part.index or 0, part.id if function.name else None)
        call.id = part.id or call.id
        call.name += function.name or ""
        call.arguments += function.arguments or ""

    def _find_call(self, index: int, new_id: str | None) -> ToolCall:
        """Returns the call at an index, or a new call.

        Another id begins another call, because some servers give all calls the same index.
        """
        call = self._growing_calls.get(index)
        if call is None or (new_id and call.id and new_id != call.id):
            call = self._growing_calls[index] = ToolCall()
            self.tool_calls.append(call)
        return call
