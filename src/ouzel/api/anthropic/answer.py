"""Writes the answers of POST /messages: a message, or events that add up to a message."""

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from msgspec import UNSET, UnsetType

from ouzel.api.anthropic.block_writer import BlockWriter, fold_blocks
from ouzel.api.anthropic.context_management import AppliedEdits
from ouzel.api.anthropic.hosted_writing import HostedWriting
from ouzel.api.anthropic.message_object import (
    AnsweredBlock,
    BlockEvent,
    CacheCreation,
    DeltaUsage,
    MessageDelta,
    MessageEnd,
    MessageObject,
    MessageStart,
    MessageStop,
    MessageUsage,
    OutputTokensDetails,
    Ping,
    ServerToolUsage,
    StopReason,
    StreamEvent,
)
from ouzel.api.anthropic.named_events import NAMED_EVENTS
from ouzel.api.anthropic.request import MessagesRequest, ThinkingAdaptive, ThinkingEnabled
from ouzel.api.http.framing import Framing
from ouzel.generation import Finished, Output, PromptScored, ServedModel, Usage
from ouzel.hosted_chats.events import CallEnded, Paused, TurnEvent
from ouzel.types.step_output import FinishReason


class MessageAnswer:
    """Writes one message. A unary answer is the folded events of the stream."""

    def __init__(
        self,
        message_id: str,
        body: MessagesRequest,
        model: ServedModel,
        edits: AppliedEdits | None,
        on_end: Callable[[Sequence[AnsweredBlock]], None] | None,
        *,
        hosted: HostedWriting | None = None,
    ) -> None:
        """Takes the context `edits` of the prompt, or None if the request manages no context.

        `hosted` writes the calls that this server runs; None if it runs none.
        `on_end` takes the blocks of a complete message, before the client sees its end.
        """
        self.is_stream = bool(body.stream)
        self.framing: Framing = NAMED_EVENTS
        self._id = message_id
        self._model_name = model.names[0]
        self._max_model_len = model.engine.info.max_model_len
        self._max_tokens = body.max_tokens
        self._stop_sequences = body.stop_sequences or ()
        self._context_management = UNSET if edits is None else edits
        self._on_end = on_end
        self._streamed: list[BlockEvent] = []  # block events so far, if `on_end` is set
        self._writer = BlockWriter(shows_thinking=not _omits_thinking(body), hosted=hosted)
        self._hosted = hosted
        self._is_paused = False
        self._is_started = False
        self._finished: Finished | None = None

    def chunks(self, events: Sequence[TurnEvent], usage: Usage) -> list[StreamEvent]:
        written: list[StreamEvent] = []
        if not self._is_started:
            self._is_started = True
            written += [MessageStart(self._message([], usage)), Ping()]
        blocks = [block_event for event in events for block_event in self._write_events(event)]
        if self._on_end is not None:
            self._streamed += blocks
        return [*written, *blocks]

    def last_chunks(self, usage: Usage) -> list[StreamEvent]:
        stop_reason, stop_sequence = self._stop(usage)
        delta_usage = DeltaUsage(
            input_tokens=usage.prompt_tokens - usage.cached_tokens,
            cache_read_input_tokens=usage.cached_tokens,
            output_tokens=usage.completion_tokens,
            output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
            server_tool_use=self._tool_usage(),
        )
        end = MessageEnd(stop_reason, stop_sequence)
        if self._on_end is not None:
            self._on_end(fold_blocks(self._streamed))
        return [MessageDelta(end, delta_usage, self._context_management), MessageStop()]

    def whole(self, events: Sequence[TurnEvent], usage: Usage) -> MessageObject:
        written = [block_event for event in events for block_event in self._write_events(event)]
        message = self._message(fold_blocks(written), usage)
        message.stop_reason, message.stop_sequence = self._stop(usage)
        message.usage.server_tool_use = self._tool_usage()
        message.context_management = self._context_management
        if self._on_end is not None:
            self._on_end(message.content)
        return message

    def _write_events(self, event: TurnEvent) -> Iterator[BlockEvent]:
        match event:
            case PromptScored():
                return  # the endpoint has no field that asks for it
            case Output(deltas=deltas):
                for delta in deltas:
                    yield from self._writer.write(delta)
            case CallEnded():
                yield from self._writer.write_result(event)
            case Paused():
                self._is_paused = True
            case Finished():
                self._finished = event
                yield from self._writer.finish()
            case unreachable:
                assert_never(unreachable)

    def _message(self, content: list[AnsweredBlock], usage: Usage) -> MessageObject:
        return MessageObject(
            id=self._id,
            model=self._model_name,
            content=content,
            stop_reason=None,
            stop_sequence=None,
            usage=MessageUsage(
                input_tokens=usage.prompt_tokens - usage.cached_tokens,
                cache_read_input_tokens=usage.cached_tokens,
                cache_creation=CacheCreation(),
                output_tokens=usage.completion_tokens,
                output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
            ),
        )

    def _tool_usage(self) -> ServerToolUsage | UnsetType:
        if self._hosted is None or self._hosted.num_searches + self._hosted.num_fetches == 0:
            return UNSET
        return ServerToolUsage(self._hosted.num_searches, self._hosted.num_fetches)

    def _stop(self, usage: Usage) -> tuple[StopReason, str | None]:
        assert self._finished is not None
        if self._is_paused:
            return "pause_turn", None
        if self._finished.reason is FinishReason.LENGTH:
            # The usage of several turns counts the prompt several times.
            is_full = (
                self._hosted is not None
                or usage.prompt_tokens + usage.completion_tokens >= self._max_model_len
            )
            is_cut = is_full and usage.completion_tokens < self._max_tokens
            return "model_context_window_exceeded" if is_cut else "max_tokens", None
        matched = self._finished.stop_reason
        if isinstance(matched, str) and matched in self._stop_sequences:
            return "stop_sequence", matched
        return "tool_use" if self._writer.num_calls else "end_turn", None


def _omits_thinking(body: MessagesRequest) -> bool:
    return (
        isinstance(body.thinking, ThinkingEnabled | ThinkingAdaptive)
        and body.thinking.display == "omitted"
    )
