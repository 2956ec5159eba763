"""Writes the output of a model as blocks. A block is closed before the next block opens.

The signature of a thinking block holds the thinking too, so hidden thinking can be read back.
Whitespace alone makes no block beside others, because Anthropic's API refuses such blocks and a
session may continue there. So whitespace is held back until the next output.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, assert_never

import msgspec
from msgspec import UnsetType

from ouzel.api.anthropic.call_ids import show_call_id
from ouzel.api.anthropic.hosted_blocks import AnsweredMcpUse, AnsweredServerUse
from ouzel.api.anthropic.hosted_writing import HostedWriting
from ouzel.api.anthropic.message_object import (
    AnsweredBlock,
    AnsweredText,
    AnsweredThinking,
    AnsweredToolUse,
    BlockEvent,
    CitationPiece,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    InputPiece,
    Piece,
    SignaturePiece,
    TextPiece,
    ThinkingPiece,
)
from ouzel.generation import ContentDelta, Delta, ReasoningDelta, ToolCallDelta
from ouzel.hosted_chats.events import CallEnded
from ouzel.responses.items.packed_text import THINKING

Kind = Literal["text", "thinking"]
ResultKind = Literal["result"]


class BlockWriter:
    def __init__(self, *, shows_thinking: bool, hosted: HostedWriting | None = None) -> None:
        """`hosted` writes the calls that this server runs; None if it runs none."""
        self._hosted = hosted
        self.num_calls = 0
        # If false, only the signature holds the thinking.
        self._shows_thinking = shows_thinking
        self._num_blocks = 0
        # kind of the open block; for a call, its index
        self._open: Kind | ResultKind | int | None = None
        self._thinking = ""  # thinking in the open block
        self._held: tuple[Kind, str] | None = None  # whitespace that is held back

    def write(self, delta: Delta) -> Iterator[BlockEvent]:
        match delta:
            case ContentDelta(text):
                yield from self._write_text("text", text)
            case ReasoningDelta(text):
                yield from self._write_text("thinking", text)
            case ToolCallDelta(index=index, arguments=arguments):
                if self._open != index:
                    yield from self._open_call(delta)
                if arguments:
                    yield self._piece(InputPiece(arguments))
            case unreachable:
                assert_never(unreachable)

    def write_result(self, ended: CallEnded) -> Iterator[BlockEvent]:
        """Writes the result of a call that this server has run."""
        assert self._hosted is not None
        self._held = None
        yield from self._close()
        yield self._start("result", self._hosted.end(ended))
        yield from self._close()

    def finish(self) -> Iterator[BlockEvent]:
        if self._held is not None and self._num_blocks == 0:  # the answer is only whitespace
            kind, text = self._held
            yield self._open_text(kind)
            yield from self._text_pieces(kind, text)
        yield from self._close()

    def _write_text(self, kind: Kind, text: str) -> Iterator[BlockEvent]:
        if self._open != kind:
            if self._held is not None and self._held[0] == kind:
                text = self._held[1] + text
            self._held = (kind, text) if text.isspace() else None
            if self._held is not None:
                return
            yield from self._close()
            yield self._open_text(kind)
        yield from self._text_pieces(kind, text)

    def _text_pieces(self, kind: Kind, text: str) -> Iterator[BlockEvent]:
        if kind == "text":
            yield self._piece(TextPiece(text))
            if self._hosted is not None:
                for citation in self._hosted.cite(text):
                    yield self._piece(CitationPiece(citation))
            return
        self._thinking += text
        if self._shows_thinking:
            yield self._piece(ThinkingPiece(text))

    def _open_text(self, kind: Kind) -> BlockEvent:
        if kind == "text" and self._hosted is not None:
            self._hosted.open_text()
        return self._start(kind, AnsweredText("") if kind == "text" else AnsweredThinking("", ""))

    def _open_call(self, delta: ToolCallDelta) -> Iterator[BlockEvent]:
        assert delta.id is not None and delta.name is not None
        self._held = None
        yield from self._close()
        use = None if self._hosted is None else self._hosted.begin(delta.id, delta.name)
        if use is not None:
            yield self._start(delta.index, use)
            return
        self.num_calls += 1
        yield self._start(delta.index, AnsweredToolUse(show_call_id(delta.id), delta.name, {}))

    def _start(self, what: Kind | ResultKind | int, block: AnsweredBlock) -> BlockEvent:
        self._open = what
        self._num_blocks += 1
        return ContentBlockStart(self._num_blocks - 1, block)

    def _piece(self, piece: Piece) -> BlockEvent:
        return ContentBlockDelta(self._num_blocks - 1, piece)

    def _close(self) -> Iterator[BlockEvent]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._piece(SignaturePiece(THINKING.pack(self._thinking)))
            self._thinking = ""
        self._open = None
        yield ContentBlockStop(self._num_blocks - 1)


def fold_blocks(events: Sequence[BlockEvent]) -> list[AnsweredBlock]:
    """Adds up the events of a stream to blocks."""
    blocks: list[AnsweredBlock] = []
    written = ""  # the JSON text of the open call's input
    for event in events:
        match event:
            case ContentBlockStart(content_block=block):
                blocks.append(block)
                written = ""
            case ContentBlockDelta(delta=InputPiece(piece)):
                written += piece
            case ContentBlockDelta(delta=other):
                _add(blocks[-1], other)
            case ContentBlockStop():
                call = blocks[-1]
                if isinstance(call, AnsweredToolUse | AnsweredMcpUse | AnsweredServerUse):
                    call.input = _parse_input(written)
            case unreachable:
                assert_never(unreachable)
    return blocks


def _add(block: AnsweredBlock, piece: Piece) -> None:
    match block, piece:
        case AnsweredText(), TextPiece(text):
            block.text += text
        case AnsweredText(), CitationPiece(citation):
            cited = [] if isinstance(block.citations, UnsetType) else block.citations
            block.citations = [*cited, citation]
        case AnsweredThinking(), ThinkingPiece(text):
            block.thinking += text
        case AnsweredThinking(), SignaturePiece(signature):
            block.signature = signature


def _parse_input(written: str) -> dict[str, object]:
    """Parses the input of a call.

    Text that is not a JSON object, because it was cut or is nested too deeply, is returned under
    the key INVALID_JSON, as in Anthropic's guide.
    """
    try:
        value = msgspec.json.decode(written or "{}")
    except (msgspec.DecodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"INVALID_JSON": written}
