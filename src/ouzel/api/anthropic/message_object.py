"""Defines the message of an answer, and the events of a stream.

Keys that Anthropic's service omits, such as the `citations` of a text without any, are omitted here
too: some clients accept no null for them.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.api.anthropic.context_management import AppliedEdits
from ouzel.api.anthropic.hosted_blocks import HostedResult, HostedUse, PageCitation


class AnsweredText(msgspec.Struct, tag="text"):
    text: str
    citations: list[PageCitation] | UnsetType = UNSET


class AnsweredThinking(msgspec.Struct, tag="thinking"):
    thinking: str
    signature: str


class AnsweredToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: dict[str, object]


AnsweredBlock = AnsweredText | AnsweredThinking | AnsweredToolUse | HostedUse | HostedResult
StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "model_context_window_exceeded",
]


class CacheCreation(msgspec.Struct):
    """Counts tokens that were written to a cache: always 0, because prompts are cached for free."""

    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class OutputTokensDetails(msgspec.Struct):
    thinking_tokens: int


class ServerToolUsage(msgspec.Struct):
    web_search_requests: int
    web_fetch_requests: int = 0


class MessageUsage(msgspec.Struct, kw_only=True):
    input_tokens: int  # input tokens that were not read from the cache
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int
    cache_creation: CacheCreation
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    service_tier: Literal["standard"] = "standard"
    server_tool_use: ServerToolUsage | UnsetType = UNSET  # set if searches have run


class DeltaUsage(msgspec.Struct, kw_only=True):
    """Counts the tokens of the whole message, not only the new ones."""

    input_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    server_tool_use: ServerToolUsage | UnsetType = UNSET  # set if searches have run


class MessageObject(msgspec.Struct, tag="message", kw_only=True):
    id: str
    role: Literal["assistant"] = "assistant"
    model: str
    content: list[AnsweredBlock]
    stop_reason: StopReason | None
    stop_sequence: str | None
    stop_details: None = None
    usage: MessageUsage
    # set if the request manages the context
    context_management: AppliedEdits | UnsetType = UNSET


class MessageStart(msgspec.Struct, tag="message_start"):
    message: MessageObject


class Ping(msgspec.Struct, tag="ping"):
    """Keeps the connection of a stream alive."""


class ContentBlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: AnsweredBlock


class TextPiece(msgspec.Struct, tag="text_delta"):
    text: str


class ThinkingPiece(msgspec.Struct, tag="thinking_delta"):
    thinking: str


class SignaturePiece(msgspec.Struct, tag="signature_delta"):
    signature: str


class InputPiece(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class CitationPiece(msgspec.Struct, tag="citations_delta"):
    citation: PageCitation


Piece = TextPiece | ThinkingPiece | SignaturePiece | InputPiece | CitationPiece


class ContentBlockDelta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: Piece


class ContentBlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int


class MessageEnd(msgspec.Struct):
    stop_reason: StopReason
    stop_sequence: str | None
    stop_details: None = None


class MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: MessageEnd
    usage: DeltaUsage
    context_management: AppliedEdits | UnsetType = UNSET


class MessageStop(msgspec.Struct, tag="message_stop"):
    pass


BlockEvent = ContentBlockStart | ContentBlockDelta | ContentBlockStop
StreamEvent = MessageStart | Ping | BlockEvent | MessageDelta | MessageStop
STREAM_EVENTS = (
    MessageStart,
    Ping,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
)
