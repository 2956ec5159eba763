"""An answer grows by the chunks of a chat completion's stream."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from ouzel.client.base import UNREADABLE, ApiFailure


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # the same, where a server calls it so
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached_tokens(self) -> int:
        return (self.prompt_tokens_details and self.prompt_tokens_details.cached_tokens) or 0


class _Error(msgspec.Struct):
    message: str | None = None


class _Chunk(msgspec.Struct):
    object: str | None = None
    message: str | None = None  # where the object is "error", as some servers have it
    choices: list[_Choice] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    error: _Error | str | None = None


_NO_REASON = "the server sent an error, and gives no reason"
_decode = msgspec.json.Decoder(_Chunk).decode


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
class Piece:
    """What a chunk adds to the text."""

    reasoning: str = ""
    content: str = ""


@dataclass(slots=True)
class Answer:
    """Is mutable while it comes."""

    content: str = ""
    reasoning: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str | None = None
    usage: Usage | None = None
    usage_json: msgspec.Raw | None = None  # with all that the server counts
    is_stopped: bool = False  # by the user
    begin_s: float = field(default_factory=time.perf_counter)
    first_s: float | None = None  # when the first text or call came
    end_s: float | None = None
    _growing_calls: dict[int, ToolCall] = field(
        default_factory=dict
    )  # by the index that the server gives them

    @property
    def is_over(self) -> bool:
        """Tells whether its end has come. Some servers give no reason of the end, but the usage, which comes last."""
        return self.is_stopped or self.finish_reason is not None or self.usage is not None

    def feed(self, event: bytes) -> Piece:
        """Raises ApiFailure where the event is an error, or no chunk."""
        try:
            chunk = _decode(event)
        except UNREADABLE as error:
            raise ApiFailure(
                f"the server sent what is no chunk of a chat completion: {error}"
            ) from error
        if chunk.error is not None:
            message = chunk.error if isinstance(chunk.error, str) else chunk.error.message
            raise ApiFailure(message or _NO_REASON)
        if chunk.object == "error":
            raise ApiFailure(chunk.message or _NO_REASON)
        self._count(chunk.usage)
        choice = chunk.choices[0] if chunk.choices else _Choice()
        self.finish_reason = choice.finish_reason or self.finish_reason
        return self._grown(choice.delta or _Delta())

    def end(self) -> None:
        self.end_s = time.perf_counter()

    def message(self) -> dict[str, object]:
        """Returns it as a message of the conversation. Calls are left out where they may have been cut off."""
        message: dict[str, object] = {"role": "assistant", "content": self.content or None}
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls and not self.is_stopped:
            message["tool_calls"] = [call.on_the_wire() for call in self.tool_calls]
        elif not self.content:
            message["content"] = ""
        return message

    def _grown(self, delta: _Delta) -> Piece:
        piece = Piece(
            delta.reasoning_content or delta.reasoning or "", delta.content or delta.refusal or ""
        )
        self.reasoning += piece.reasoning
        self.content += piece.content
        for part in delta.tool_calls or ():
            self._add_to_call(part)
        if self.first_s is None and (piece.reasoning or piece.content or delta.tool_calls):
            self.first_s = time.perf_counter()
        return piece

    def _count(self, usage: msgspec.Raw) -> None:
        """Keeps the counts; those that are none of numbers are the server's own, and no reason to lose an answer."""
        if bytes(usage) == b"null":
            return
        self.usage_json = usage
        with suppress(*UNREADABLE):
            self.usage = msgspec.json.decode(usage, type=Usage)

    def _add_to_call(self, part: _Call) -> None:
        function = part.function or _Function()
        call = self._find_call(part.index or 0, part.id if function.name else None)
        call.id = part.id or call.id
        call.name += function.name or ""
        call.arguments += function.arguments or ""

    def _find_call(self, index: int, begun_id: str | None) -> ToolCall:
        """Returns the call that grows there. Another id begins another: some servers give all calls the same index."""
        call = self._growing_calls.get(index)
        if call is None or (begun_id and call.id and begun_id != call.id):
            call = self._growing_calls[index] = ToolCall()
            self.tool_calls.append(call)
        return call
