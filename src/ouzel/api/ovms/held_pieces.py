"""The newest piece of a streamed choice waits, so that the last piece of text can carry the finish reason, as in OVMS.

Rules
1. A choice begins with an opening chunk without text. It is sent at once: clients measure the time to the first token.
2. A piece leaves with the next piece of its choice, or with the end of the choice, whose reason it then carries.
3. A piece also leaves after many tokens without text: the marks of a call, for example, give none.
4. A piece that leaves has the newest usage, so that the usage of no chunk is below the usage of the chunk before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec import UNSET, UnsetType

from ouzel.api.openai.chat_answer import ChatCompletionChunk
from ouzel.api.openai.completions import Completion
from ouzel.api.openai.envelope import UsageObject
from ouzel.generation import Event, Output

# more than most models write from the last argument of a call to the end of the answer
_MAX_TOKENS_WAITED = 16

Chunk = TypeVar("Chunk", ChatCompletionChunk, Completion)


class HeldPieces(Generic[Chunk]):
    def __init__(self) -> None:
        self._held: dict[int, _Held[Chunk]] = {}  # by index of the choice
        self._usage: UsageObject | UnsetType | None = UNSET  # of the newest chunk

    def take(self, event: Event, pieces: Sequence[Chunk]) -> list[Chunk]:
        """Takes the chunks of one event, of one choice each, and returns the chunks to send now."""
        due: list[Chunk] = []
        for piece in pieces:
            self._usage = piece.usage
            held = self._held.pop(piece.choices[0].index, None)
            if piece.choices[0].finish_reason is None:
                due += [] if held is None else [held.piece]
                self._held[piece.choices[0].index] = _Held(piece)
            else:
                due.append(piece if held is None else _ended(held.piece, piece))
        if isinstance(event, Output) and not pieces:
            due += self._after_silence(event)
        for piece in due:
            piece.usage = self._usage
        return due

    def _after_silence(self, output: Output) -> list[Chunk]:
        """Counts tokens without text, and returns the piece that has waited for too many of them."""
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


def _ended(piece: Chunk, end: Chunk) -> Chunk:
    """Returns the piece with the reasons of the chunk that ends its choice."""
    piece.choices[0].finish_reason = end.choices[0].finish_reason
    piece.choices[0].stop_reason = end.choices[0].stop_reason
    return piece
