"""The shapes shared by all skills: one question with its answer, and a whole conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]


@dataclass
class Exchange:
    """A user's message, the answer, the thought behind it, and how an answer is judged.

    `check` is `exact` (same text), `one_of` (same as one of `accepted`) or `contains` (has every string of `accepted`).
    """

    user: str
    answer: str
    thought: str
    check: str = "exact"
    accepted: list[str] = field(default_factory=list)


@dataclass
class Conversation:
    """Messages to render; the last one is the assistant's and the one that an evaluation asks for."""

    skill: str
    messages: list[Message]
    check: str = "exact"
    accepted: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] | None = None
    thinking: bool = False
