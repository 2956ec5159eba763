"""The messages of a benchmark, made before the first request, equal for runs with the same seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # JSON

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """The messages of one request and the length of its answer."""

    messages: tuple[JsonObject, ...]
    max_tokens: int
    input_len: int  # length of the messages in tokens or words; 0 if unknown


@dataclass(frozen=True, slots=True)
class Conversation:
    """Turns that are sent one after the other; each request repeats the earlier turns."""

    turns: tuple[Turn, ...]
    tools: tuple[JsonObject, ...] = ()


def user_turn(text: str, *, max_tokens: int, input_len: int) -> Turn:
    return Turn(({"role": "user", "content": text},), max_tokens, input_len)
