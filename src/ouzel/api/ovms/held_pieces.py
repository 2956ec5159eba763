"""The newest piece of a streamed choice waits, so that the last piece of text can carry the finish reason, as in OVMS.

Rules
1. A choice begins with an opening chunk without text. It is sent at once: clients measure the time to the first token.
2. A piece leaves with the next piece of its choice, or with the end of the choice, whose reason it then carries.
3. A piece also leaves after many tokens without text: the marks of a call, for example, give none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ouzel.api.openai.chat_answer import ChatCompletionChunk
from ouzel.api.openai.completions import Completion
from ouzel.generation import Event, Output

_MAX_TOKENS_WAITED = 16  # more than most models write from the last argument of a call to the end of the answer

Chunk = TypeVar("Chunk", ChatCompletionChunk, Completion)


class HeldPieces(Generic[Chunk]):
    def __init__(self) -> None:
        self._held: dict[int, _Held[Chunk]] = {}  # by index of the choice

    def take(self, event: Event, pieces: Sequence[Chunk]) -> list[Chunk]:
        """Takes the chunks of one event, of one choice each, and returns the chunks to send now."""
        due: list[Chunk] = []
        for piece in pieces:
            held = self._held.pop(piece.choices[0].index, None)
            if piece.choices[0].finish_reason is None:
                due += [] if held is None else [held.piece]
                self._held[piece.choices[0].index] = _Held(piece)
            else:
                due.append(piece if held is None else _ended(held.piece, piece))
        if isinstance(event, Output) and not pieces:
            due += self._after_silence(event)
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
    """Returns the piece with the finish reason and the usage of the last chunk."""
    piece.choices[0].finish_reason = end.choices[0].finish_reason
    piece.choices[0].stop_reason = end.choices[0].stop_reason
    piece.usage = end.usage
    return piece
