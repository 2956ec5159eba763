"""The bodies of /v1/messages and /v1/messages/count_tokens."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.api.anthropic.blocks import MessageList, SystemPrompt
from ouzel.api.anthropic.cache_control import CacheControl
from ouzel.api.anthropic.context_management import ContextManagement
from ouzel.api.anthropic.threads import ThreadField
from ouzel.api.anthropic.tools import ToolChoice, ToolList
from ouzel.sampling import SamplingFields
from ouzel.wire.fields import StopString
from ouzel.wire.model_name import ModelName

_MIN_BUDGET_TOKENS = 1024

Display = Annotated[
    Literal["summarized", "omitted"] | None,
    Meta(description="omitted: the thinking is in the signature only."),
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
    """The model thinks where it does, which may be between calls."""


class ThinkingDisabled(msgspec.Struct, frozen=True, tag="disabled"):
    pass


ThinkingConfig = ThinkingEnabled | ThinkingAdaptive | ThinkingBetweenTools | ThinkingDisabled


class JsonOutputFormat(msgspec.Struct, frozen=True, tag="json_schema"):
    schema: Annotated[dict[str, object], Meta(description="The JSON schema that the text obeys.")]


class OutputConfig(msgspec.Struct, frozen=True):
    format: Annotated[JsonOutputFormat | None, Meta(description="The form of the text.")] = None
    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        Meta(description="For a chat template that reads reasoning_effort; else not used."),
    ] = None


class RequestMetadata(msgspec.Struct, frozen=True):
    user_id: Annotated[str | None, Meta(description="Who asks; not used.")] = None


class MessagesRequest(SamplingFields, kw_only=True):
    """Sampling parameters that Anthropic's API has not are those of the other endpoints."""

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
    stream: Annotated[bool | None, Meta(description="Sends events.")] = None
    stop_sequences: (
        Annotated[list[StopString], Meta(max_length=64, description="Texts that end the answer.")]
        | None
    ) = None
    tools: ToolList | None = None
    tool_choice: ToolChoice = None
    thinking: Annotated[
        ThinkingConfig | None,
        Meta(description="Whether a model that reasons does so; disabled when not given."),
    ] = None
    output_config: Annotated[OutputConfig | None, Meta(description="The form of the answer.")] = (
        None
    )
    output_format: Annotated[
        JsonOutputFormat | None, Meta(description="The older name of output_config.format.")
    ] = None
    context_management: Annotated[
        ContextManagement | None, Meta(description="What the prompt leaves out.")
    ] = None
    thread: Annotated[
        ThreadField,
        Meta(description="The server holds the conversation, or goes on with one that it holds."),
    ] = None
    mcp_servers: Annotated[
        list[dict[str, object]] | None,
        Meta(description="Left out where there are tools; this server calls none."),
    ] = None
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
        str | None, Meta(description="Not used: the server is where it is.")
    ] = None


class CountTokensRequest(MessagesRequest, kw_only=True):
    """Whatever a message may be asked for counts here as it does there."""

    max_tokens: Annotated[int | None, Meta(description="Not used.")] = None  # type: ignore[assignment]  # nothing reads it
