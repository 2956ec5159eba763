"""The response object, as OpenAI defines it (`Response`).

Every key is present. Keys that repeat the request have the effective value, for example a default.
"""

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from ouzel.generation import Usage
from ouzel.responses.output_items import OutputItem, OutputMessage, OutputText
from ouzel.responses.request import Verbosity
from ouzel.responses.templates.reference import PromptReference
from ouzel.responses.text_format import TextFormat
from ouzel.wire.tools import AnyNamedHostedTool

ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
ErrorCode = Literal["server_error", "invalid_prompt"]
# The word of OpenAI, and the word of OpenVINO Model Server.
LimitReason = Literal["max_output_tokens", "max_tokens"]


class ResponseError(msgspec.Struct, frozen=True):
    code: ErrorCode
    message: str


class IncompleteDetails(msgspec.Struct, frozen=True):
    reason: LimitReason | Literal["steered"]


class InputTokensDetails(msgspec.Struct, frozen=True):
    cached_tokens: int
    cache_write_tokens: int = 0  # writes to the prefix cache are not counted


class OutputTokensDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: int


class ResponseUsage(msgspec.Struct, frozen=True):
    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int


class ShownText(msgspec.Struct, frozen=True):
    format: TextFormat
    verbosity: Verbosity


class ShownReasoning(msgspec.Struct, frozen=True):
    effort: str | None
    summary: str | None


class ShownFunctionChoice(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    name: str
    namespace: str | UnsetType = UNSET


class ShownCustomChoice(msgspec.Struct, frozen=True, tag_field="type", tag="custom"):
    name: str
    namespace: str | UnsetType = UNSET


ShownNamedTool = ShownFunctionChoice | ShownCustomChoice | AnyNamedHostedTool


class ShownAllowedTools(msgspec.Struct, frozen=True, tag_field="type", tag="allowed_tools"):
    mode: Literal["auto", "required"]
    tools: list[ShownNamedTool]


ShownToolChoice = Literal["none", "auto", "required"] | ShownNamedTool | ShownAllowedTools


class ShownConversation(msgspec.Struct, frozen=True):
    id: str


class ResponseObject(msgspec.Struct, frozen=True, kw_only=True, tag_field="object", tag="response"):
    id: str
    created_at: int  # unix seconds
    completed_at: int | UnsetType | None = UNSET  # unix seconds, set if the status is completed
    status: ResponseStatus = "in_progress"
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    model: str
    output: list[OutputItem] = []
    usage: ResponseUsage | None = None
    # The effective values of request fields.
    # A list of messages if a prompt template has messages.
    instructions: str | list[dict[str, object]] | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: dict[str, str]
    parallel_tool_calls: bool
    prompt_cache_key: str | None
    reasoning: ShownReasoning
    safety_identifier: str | None
    temperature: float
    text: ShownText
    tool_choice: ShownToolChoice
    tools: list[dict[str, object]]  # the tools of the request in the form of this API
    top_logprobs: int
    top_p: float
    truncation: Literal["auto", "disabled"]
    user: str | None
    background: bool
    conversation: ShownConversation | None
    previous_response_id: str | None
    prompt: PromptReference | None = None
    store: bool
    # OpenResponses requires these keys; responses stored by older versions lack them: 0.
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    # Only with return_token_ids; the ids of the output appear at the end.
    prompt_token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    token_ids: list[int] | msgspec.UnsetType = msgspec.UNSET
    # Only for a request with tools that were left out.
    warnings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    # The same for all responses of this server.
    service_tier: Literal["default"] = "default"
    # Features that this server does not have.
    access_programs: None = None
    image: None = None
    input_transformations: None = None
    moderation: None = None
    prompt_cache_diagnostics: None = None
    prompt_cache_options: None = None
    prompt_cache_retention: None = None
    tool_usage: None = None

    @property
    def text_parts(self) -> list[OutputText]:
        return [
            part for item in self.output if isinstance(item, OutputMessage) for part in item.content
        ]


def find_earlier_usage(response: ResponseObject) -> Usage | None:
    """Returns the tokens that a response in its middle has used, if its server stored them."""
    usage = response.usage
    if usage is None:
        return None
    return Usage(
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.input_tokens_details.cached_tokens,
        completion_tokens=usage.output_tokens,
        reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
    )


def response_usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        usage.prompt_tokens,
        InputTokensDetails(usage.cached_tokens),
        usage.completion_tokens,
        OutputTokensDetails(usage.reasoning_tokens),
        usage.prompt_tokens + usage.completion_tokens,
    )
