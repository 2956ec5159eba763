"""The output items of a response and their parts, as OpenAI defines them (`ResponseOutputItem`)."""

import secrets
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.responses.hosted.citations import Annotation
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.routing import find_chain_root
from ouzel.wire.logprobs import ContentLogprob

_ID_BYTES = 24

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(msgspec.Struct, frozen=True, tag_field="type", tag="output_text"):
    text: str
    logprobs: list[ContentLogprob]  # empty unless the request asks for log probabilities
    annotations: list[Annotation] = []  # the citations in the text


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
    # the same text, packed (`packed_text.REASONING`); None unless the request includes it
    encrypted_content: str | None = None


CallItem = FunctionCallItem | CustomToolCallItem
WrittenItem = OutputMessage | CallItem | ReasoningItem  # the items that the model streams
OutputItem = WrittenItem | CompactionItem | AnyHostedItem


def new_id(prefix: str, *, continues: str | None = None) -> str:
    """Returns a random id that cannot be guessed.

    With `continues`, the id of an earlier response or conversation, the new id begins with the
    same digits, so that the replica pool routes both to one replica (`routing.find_chain_root`).
    """
    root = "" if continues is None else find_chain_root(continues)
    return f"{prefix}_{root}{secrets.token_hex(_ID_BYTES - len(root) // 2)}"
