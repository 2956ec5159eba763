"""A turn of a chat: adjacent messages of one role, as one message of the chat template."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ouzel.api.anthropic.blocks import Role
from ouzel.generation import DocumentPart, MediaPart
from ouzel.wire.decode import JsonObject

Piece = str | MediaPart | DocumentPart  # a text, an image or a PDF


@dataclass(slots=True)
class Turn:
    role: Role
    path: str  # path of the first message of the turn
    pieces: list[Piece] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[JsonObject] = field(default_factory=list)
    # id and name of the call, for the result of a tool
    answered: JsonObject = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.pieces or self.reasoning or self.calls)

    def message(self) -> JsonObject:
        message: JsonObject = {"role": self.role, "content": _content(self.pieces), **self.answered}
        if self.reasoning:
            message["reasoning_content"] = "\n".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


def _content(pieces: Sequence[Piece]) -> object:
    match pieces:
        case []:
            return ""
        case [str(text)]:
            return text
        case _:
            return [
                {"type": "text", "text": piece} if isinstance(piece, str) else piece
                for piece in pieces
            ]
