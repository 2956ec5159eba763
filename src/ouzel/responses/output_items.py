"""The output items of a response, and what they are made of, are OpenAI's (`ResponseOutputItem`)."""

import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.routing import root_of
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
    namespace: str | UnsetType = UNSET


class CustomToolCallItem(msgspec.Struct, frozen=True, tag_field="type", tag="custom_tool_call"):
    id: str
    status: ItemStatus
    call_id: str
    name: str
    input: str
    namespace: str | UnsetType = UNSET


class ReasoningItem(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="reasoning"
):
    id: str
    status: ItemStatus
    summary: list[SummaryText]
    content: list[ReasoningText]
    # the same text for who asks for it so, see `packed_text.REASONING`
    encrypted_content: str | None = None


CallItem = FunctionCallItem | CustomToolCallItem
WrittenItem = OutputMessage | CallItem | ReasoningItem  # by the model, bit by bit
OutputItem = WrittenItem | CompactionItem


def new_id(prefix: str, *, continues: str | None = None) -> str:
    """Returns an id that nobody can guess; its first digits are those of the id that it `continues`, if it does one."""
    root = "" if continues is None else root_of(continues)
    return f"{prefix}_{root}{secrets.token_hex(_ID_BYTES - len(root) // 2)}"
