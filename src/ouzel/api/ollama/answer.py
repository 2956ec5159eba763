"""Writes the answers to chats and prompts: lines of JSON, or all lines folded into one object."""

import time
from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar, assert_never

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ouzel.api.http.framing import Framing
from ouzel.api.ollama.tool_calls import OllamaToolCall, ToolCalls
from ouzel.generation import (
    ContentDelta,
    Delta,
    Event,
    Finished,
    Output,
    PromptScored,
    ReasoningDelta,
    ServedModel,
    ToolCallDelta,
    Usage,
)
from ouzel.types.step_output import FinishReason, PositionLogprobs
from ouzel.wire.fold import public_finish_reason
from ouzel.wire.logprobs import ContentLogprob, chat_logprobs, token_text

NDJSON = Framing(content_type=b"application/x-ndjson", before=b"", after=b"\n", end=b"")
_NS_PER_S = 1e9


class OllamaLine(msgspec.Struct, kw_only=True):
    """The fields of lines that both endpoints share. Durations are in nanoseconds."""

    model: str
    created_at: str
    done: bool = False
    done_reason: str | UnsetType = UNSET
    total_duration: int | UnsetType = UNSET
    load_duration: int | UnsetType = UNSET
    prompt_eval_count: int | UnsetType = UNSET
    prompt_eval_duration: int | UnsetType = UNSET
    eval_count: int | UnsetType = UNSET
    eval_duration: int | UnsetType = UNSET
    logprobs: list[ContentLogprob] | UnsetType = UNSET


class Piece(msgspec.Struct):
    """The new parts of an answer at one time."""

    content: str = ""
    thinking: str = ""
    calls: list[OllamaToolCall] = msgspec.field(default_factory=list)
    logprobs: list[ContentLogprob] = msgspec.field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.content or self.thinking or self.calls or self.logprobs)

    def add(self, more: "Piece") -> None:
        self.content += more.content
        self.thinking += more.thinking
        self.calls += more.calls
        self.logprobs += more.logprobs


Line = TypeVar("Line", bound=OllamaLine)
Line_co = TypeVar("Line_co", bound=OllamaLine, covariant=True)


class MakeLine(Protocol[Line_co]):
    """Writes a piece in the form of one endpoint."""

    def __call__(self, piece: Piece, *, model: str, created_at: str) -> Line_co: ...


class OllamaAnswer(Generic[Line]):
    """Writes the answer to one request."""

    framing = NDJSON

    def __init__(
        self,
        make_line: MakeLine[Line],
        model: ServedModel,
        *,
        name: str,
        is_stream: bool,
        arrival_s: float,
    ) -> None:
        """`name` is the client's name of the model."""
        self.is_stream = is_stream
        self.token_ids: list[int] = []  # all token ids of the output so far
        self._make_line = make_line
        self._model = model
        self._name = name
        self._arrival_s = arrival_s
        self._calls = ToolCalls()
        self._text_of = token_text(model, as_token_ids=False)
        self._done_reason = ""

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[Line]:
        return [self._line(piece) for event in events if not (piece := self._piece(event)).is_empty]

    def last_chunks(self, usage: Usage) -> list[Line]:
        return [self._last_line(Piece(), usage)]

    def whole(self, events: Sequence[Event], usage: Usage) -> Line:
        whole = Piece()
        for event in events:
            whole.add(self._piece(event))
        return self._last_line(whole, usage)

    def _piece(self, event: Event) -> Piece:
        match event:
            case PromptScored():
                return Piece()
            case Output(deltas=deltas, token_ids=token_ids, logprobs=logprobs):
                self.token_ids += token_ids
                piece = Piece(logprobs=self._logprobs(logprobs))
                for part in self._parts(deltas):
                    piece.add(part)
                return piece
            case Finished(reason=reason):
                self._done_reason = done_reason(reason)
                return _make_call_piece(self._calls.finish())
            case unreachable:
                assert_never(unreachable)

    def _parts(self, deltas: Sequence[Delta]) -> Iterator[Piece]:
        for delta in deltas:
            match delta:
                case ContentDelta(text):
                    yield _make_call_piece(self._calls.finish())
                    yield Piece(content=text)
                case ReasoningDelta(text):
                    yield _make_call_piece(self._calls.finish())
                    yield Piece(thinking=text)
                case ToolCallDelta():
                    yield _make_call_piece(self._calls.feed(delta))
                case unreachable:
                    assert_never(unreachable)

    def _logprobs(self, positions: Sequence[PositionLogprobs]) -> list[ContentLogprob]:
        return chat_logprobs(positions, self._model, self._text_of).content

    def _line(self, piece: Piece) -> Line:
        line = self._make_line(piece, model=self._name, created_at=now())
        return replace(line, logprobs=piece.logprobs) if piece.logprobs else line

    def _last_line(self, piece: Piece, usage: Usage) -> Line:
        durations = usage.durations
        prompt_s, output_s = (
            (0.0, 0.0) if durations is None else (durations.prompt_s, durations.output_s)
        )
        total_s = time.perf_counter() - self._arrival_s
        return replace(
            self._line(piece),
            done=True,
            done_reason=self._done_reason,
            total_duration=nanoseconds(total_s),
            # the time to read the request, and to wait in the queue
            load_duration=nanoseconds(total_s - prompt_s - output_s),
            prompt_eval_count=usage.prompt_tokens,
            prompt_eval_duration=nanoseconds(prompt_s),
            eval_count=usage.completion_tokens,
            eval_duration=nanoseconds(output_s),
        )


class LoadAnswer(Generic[Line]):
    """Answers a request without a prompt, by which Ollama's clients load and unload models."""

    is_stream = False
    framing = NDJSON

    def __init__(self, make_line: MakeLine[Line], *, name: str, unloads: bool) -> None:
        line = make_line(Piece(), model=name, created_at=now())
        self.line = replace(line, done=True, done_reason="unload" if unloads else "load")

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[Line]:
        return []

    def last_chunks(self, usage: Usage) -> list[Line]:
        return [self.line]

    def whole(self, events: Sequence[Event], usage: Usage) -> Line:
        return self.line


def done_reason(reason: FinishReason) -> str:
    # Ollama has no word of its own for tool calls.
    return public_finish_reason(reason, called=False)


def now() -> str:
    return rfc3339(time.time_ns())


def rfc3339(time_ns: int) -> str:
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{fraction:09d}Z"


def _make_call_piece(call: OllamaToolCall | str | None) -> Piece:
    match call:
        case None:
            return Piece()
        case str():
            return Piece(content=call)
        case OllamaToolCall():
            return Piece(calls=[call])
        case unreachable:
            assert_never(unreachable)


def nanoseconds(duration_s: float) -> int:
    """Returns a duration in nanoseconds, at least 1: clients divide by it, and take 0 for none."""
    return max(int(duration_s * _NS_PER_S), 1)
