"""Holds back the newest piece of a streamed choice, so that the last text has the finish reason.

In a stream of OVMS, the chunk with the last text also has the finish reason.

Rules
1. A choice begins with an opening chunk without text, which is sent at once: clients measure the
   time to the first token.
2. A piece is sent when the next piece of its choice arrives, or at the end of the choice. At the
   end, the piece gets the finish reason.
3. A piece is also sent after many tokens without text, such as the marks of a call.
4. A piece gets the newest usage when it is sent, so that the usage never falls from chunk to chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import UNSET, UnsetType

from ouzel.api.openai.chat_answer import ChatCompletionChunk
from ouzel.api.openai.completions import Completion
from ouzel.api.openai.envelope import UsageObject
from ouzel.generation import Event, Output

# more tokens than most models write between the last argument of a call and the end
_MAX_TOKENS_WAITED = 16

Chunk = TypeVar("Chunk", ChatCompletionChunk, Completion)


class HeldPieces(Generic[Chunk]):
    def __init__(self) -> None:
        self._held: dict[int, _Held[Chunk]] = {}  # pieces by the index of their choice
        self._usage: UsageObject | UnsetType | None = UNSET  # usage of the newest chunk

    def take(self, event: Event, pieces: Sequence[Chunk]) -> list[Chunk]:
        """Takes an event's chunks, each with one choice, and returns the chunks to send now."""
        due: list[Chunk] = []
        for piece in pieces:
            self._usage = piece.usage
            held = self._held.pop(piece.choices[0].index, None)
            if piece.choices[0].finish_reason is None:
                due += [] if held is None else [held.piece]
                self._held[piece.choices[0].index] = _Held(piece)
            else:
                due.append(piece if held is None else _end_piece(held.piece, piece))
        if isinstance(event, Output) and not pieces:
            due += self._after_silence(event)
        for piece in due:
            piece.usage = self._usage
        return due

    def _after_silence(self, output: Output) -> list[Chunk]:
        """Counts tokens without text. Returns the held piece after too many of them."""
        held = self._held.get(output.index)
        if held is None:
            return []
        held.num_tokens_waited += len(output.token_ids)
        if held.num_tokens_waited < _MAX_TOKENS_WAITED:
            return []
        del self._held[output.index]
        return [held.piece]


@dataclass(slots=True)
class _Held(Generic[Chunk]):
    piece: Chunk
    num_tokens_waited: int = 0


def _end_piece(piece: Chunk, end: Chunk) -> Chunk:
    """Returns the piece with the finish reason of the chunk that ends its choice."""
    piece.choices[0].finish_reason = end.choices[0].finish_reason
    piece.choices[0].stop_reason = end.choices[0].stop_reason
    return piece
