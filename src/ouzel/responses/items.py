"""The output items of a response, and what they are made of, are OpenAI's (`ResponseOutputItem`)."""

import hashlib
import re
import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.responses.compaction_item import CompactionItem
from ouzel.wire.logprobs import ContentLogprob

_ID_BYTES = 24
_ROOT_DIGITS = 8
_CHAINED_ID = re.compile(rf"(?:resp|conv)_([0-9a-f]{{{_ROOT_DIGITS}}})[0-9a-f]{{{2 * _ID_BYTES - _ROOT_DIGITS}}}")

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


class ReasoningItem(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag="reasoning"):
    id: str
    status: ItemStatus
    summary: list[SummaryText]
    content: list[ReasoningText]
    encrypted_content: str | None = None  # the same text for who asks for it so, see `packed_text.REASONING`


CallItem = FunctionCallItem | CustomToolCallItem
WrittenItem = OutputMessage | CallItem | ReasoningItem  # by the model, bit by bit
OutputItem = WrittenItem | CompactionItem


def new_id(prefix: str, *, continues: str | None = None) -> str:
    """Returns an id that nobody can guess; its first digits are those of the id that it `continues`, if it does one."""
    root = "" if continues is None else root_of(continues)
    return f"{prefix}_{root}{secrets.token_hex(_ID_BYTES - len(root) // 2)}"


def root_of(chained_id: str) -> str:
    """Returns the digits that the ids of one conversation have in common, so that a router keeps it together.

    An id that was made elsewhere has none; what stands for them is the beginning of its SHA-256.
    """
    match = _CHAINED_ID.fullmatch(chained_id)
    if match is not None:
        return match[1]
    return hashlib.sha256(chained_id.encode(errors="replace")).hexdigest()[:_ROOT_DIGITS]
