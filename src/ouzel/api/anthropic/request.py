"""Defines the bodies of /v1/messages and /v1/messages/count_tokens."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.api.anthropic.blocks import MessageList, SystemPrompt
from ouzel.api.anthropic.cache_control import CacheControl
from ouzel.api.anthropic.context_management import ContextManagement
from ouzel.api.anthropic.hosted_tools import McpServers
from ouzel.api.anthropic.threads import ThreadField
from ouzel.api.anthropic.tools import ToolChoice, ToolList
from ouzel.sampling import SamplingFields
from ouzel.wire.fields import StopString
from ouzel.wire.model_name import ModelName

_MIN_BUDGET_TOKENS = 1024

Display = Annotated[
    Literal["summarized", "omitted"] | None,
    Meta(description="omitted: only the signature holds the thinking."),
]


class ThinkingEnabled(msgspec.Struct, frozen=True, tag="enabled"):
    budget_tokens: Annotated[
        int,
        Meta(ge=_MIN_BUDGET_TOKENS, description="Most tokens of thinking; less than max_tokens."),
    ]
    display: Display = None


class ThinkingAdaptive(msgspec.Struct, frozen=True, tag="adaptive"):
    display: Display = None


class ThinkingBetweenTools(msgspec.Struct, frozen=True, tag="between_tools"):
    """Lets the model think where it does, also between calls."""


class ThinkingDisabled(msgspec.Struct, frozen=True, tag="disabled"):
    pass


ThinkingConfig = ThinkingEnabled | ThinkingAdaptive | ThinkingBetweenTools | ThinkingDisabled


class JsonOutputFormat(msgspec.Struct, frozen=True, tag="json_schema"):
    schema: Annotated[dict[str, object], Meta(description="The JSON schema of the text.")]


class OutputConfig(msgspec.Struct, frozen=True):
    format: Annotated[JsonOutputFormat | None, Meta(description="The form of the text.")] = None
    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        Meta(description="Only for chat templates that read reasoning_effort."),
    ] = None


class RequestMetadata(msgspec.Struct, frozen=True):
    user_id: Annotated[str | None, Meta(description="An id of the end user; not used.")] = None


class MessagesRequest(SamplingFields, kw_only=True):
    """The body of POST /messages, with sampling fields that Anthropic's API lacks."""

    model: ModelName = None
    messages: MessageList
    max_tokens: Annotated[
        int,
        Meta(
            ge=0,
            description="Limit of generated tokens; 0 only computes the prompt, for the cache.",
        ),
    ]
    system: SystemPrompt = None
    stream: Annotated[bool | None, Meta(description="Sends events instead of a message.")] = None
    stop_sequences: (
        Annotated[list[StopString], Meta(max_length=64, description="Texts that end the answer.")]
        | None
    ) = None
    tools: ToolList | None = None
    tool_choice: ToolChoice = None
    thinking: Annotated[
        ThinkingConfig | None,
        Meta(description="Switches the model's reasoning; default: disabled."),
    ] = None
    output_config: Annotated[OutputConfig | None, Meta(description="The form of the answer.")] = (
        None
    )
    output_format: Annotated[
        JsonOutputFormat | None, Meta(description="The older name of output_config.format.")
    ] = None
    context_management: Annotated[
        ContextManagement | None, Meta(description="Blocks to remove from the prompt.")
    ] = None
    thread: Annotated[
        ThreadField,
        Meta(description="Stores the conversation on the server, or continues a stored one."),
    ] = None
    mcp_servers: McpServers = None
    metadata: Annotated[
        RequestMetadata | None, Meta(description="Labels of the request; not used.")
    ] = None
    cache_control: CacheControl = None
    service_tier: Annotated[
        Literal["auto", "standard_only"] | None, Meta(description="Not used: there is one tier.")
    ] = None
    speed: Annotated[
        Literal["standard", "fast"] | None, Meta(description="Not used: there is one speed.")
    ] = None
    inference_geo: Annotated[
        str | None, Meta(description="Not used: the server has one place.")
    ] = None


_UnusedMaxTokens = Annotated[int | None, Meta(description="Not used.")]


class CountTokensRequest(MessagesRequest, kw_only=True):
    """Takes all fields of a message, and counts them as the message would."""

    max_tokens: _UnusedMaxTokens = None  # type: ignore[assignment]
