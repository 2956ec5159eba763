"""The output items of a response, and what they are made of, are OpenAI's (`ResponseOutputItem`)."""

import secrets
from typing import Literal

import msgspec

from ouzel.wire.logprobs import ContentLogprob

_ID_BYTES = 24

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(msgspec.Struct, frozen=True, tag_field="type", tag="output_text"):
    text: str
    logprobs: list[ContentLogprob]  # empty when not asked for
    annotations: list[str] = []  # always empty: models here cite nothing


class ReasoningText(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    text: str


class SummaryText(msgspec.Struct, frozen=True, tag_field="type", tag="summary_text"):
    text: str


class OutputMessage(msgspec.Struct, frozen=True, tag_field="type", tag="message"):
    id: str
    status: ItemStatus
    content: list[OutputText]
    role: Literal["assistant"] = "assistant"


class FunctionCallItem(msgspec.Struct, frozen=True, tag_field="type", tag="function_call"):
    id: str
    status: ItemStatus
    call_id: str
    name: str
    arguments: str  # JSON as the model wrote it


class ReasoningItem(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    id: str
    status: ItemStatus
    summary: list[SummaryText]
    content: list[ReasoningText]


OutputItem = OutputMessage | FunctionCallItem | ReasoningItem


def new_id(prefix: str) -> str:
    """Nobody can guess it."""
    return f"{prefix}_{secrets.token_hex(_ID_BYTES)}"
