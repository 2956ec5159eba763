"""What is to be asked is known before the first request is sent, so that two runs with one seed ask the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any  # JSON

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """A request: what is said in it, and how long its answer is to be."""

    messages: tuple[JsonObject, ...]
    max_tokens: int
    input_len: int  # of these messages, in tokens or words; 0 where it is not known


@dataclass(frozen=True, slots=True)
class Conversation:
    """Each turn follows the answer to the one before, and brings all that was said."""

    turns: tuple[Turn, ...]
    tools: tuple[JsonObject, ...] = ()


def user_turn(text: str, *, max_tokens: int, input_len: int) -> Turn:
    return Turn(({"role": "user", "content": text},), max_tokens, input_len)
