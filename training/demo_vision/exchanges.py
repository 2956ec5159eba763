"""The shapes that all skills share: one turn, and a conversation."""

from dataclasses import dataclass
from typing import Any

from training.demo_vision.scene import Scene, Thing

Message = dict[str, Any]  # Any: a chat message of the API, whose content is text or parts


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: `check` says whether an answer must be the same text or the same JSON value."""

    skill: str
    user: str
    answer: str
    check: str = "text"
    about: Thing | None = None  # what `it` means afterwards


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last message is the assistant's and the one that an evaluation asks for."""

    skill: str
    messages: list[Message]
    check: str


@dataclass(frozen=True, slots=True)
class Item:
    """Conversations that show the same pictures, in the same order."""

    scenes: tuple[Scene, ...]
    conversations: list[Conversation]


def user_message(text: str, num_pictures: int = 0, *, text_first: bool = False) -> Message:
    pictures: list[Message] = [{"type": "image"}] * num_pictures
    texts: list[Message] = [{"type": "text", "text": text}] if text else []
    return {"role": "user", "content": texts + pictures if text_first else pictures + texts}


def assistant_message(text: str) -> Message:
    return {"role": "assistant", "content": text}
