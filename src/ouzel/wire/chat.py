"""Reads chat requests: everything but the messages. Each endpoint writes its own answers."""

import dataclasses
from dataclasses import dataclass

from msgspec.structs import replace

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import ChatRendering, GenerationOptions, ServedModel, Truncation
from ouzel.wire.chat_prompt import ChatPromptFields, chat_rendering
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, decode_object
from ouzel.wire.fields import GenerationFields
from ouzel.wire.offered_tools import NO_HOSTED_TOOLS, NO_TOOLS, HostedOffer, ToolNames
from ouzel.wire.options import (
    check_completion,
    limit_tokens,
    read_num_alternatives,
    read_options,
    read_truncation,
)
from ouzel.wire.shown_text import ReasoningPlace, reasoning_place
from ouzel.wire.speculation import read_prediction
from ouzel.wire.tool_use import read_tools
from ouzel.wire.tools import ToolFields


@dataclass(frozen=True, slots=True)
class Chat:
    """The settings of a chat request, without the messages."""

    options: GenerationOptions
    rendering: ChatRendering
    truncation: Truncation | None
    tool_names: ToolNames = NO_TOOLS
    reasoning_place: ReasoningPlace = "apart"


def decode_chat(
    fields: JsonObject,
    model: ServedModel,
    limits: LimitsConfig,
    hosted: HostedOffer = NO_HOSTED_TOOLS,
) -> tuple[ChatCompletionRequest, Chat]:
    """Decodes and reads the parsed body of /chat/completions."""
    request = decode_object(fields, ChatCompletionRequest)
    return request, read_chat(request, model, limits, hosted)


def read_chat(
    request: ChatCompletionRequest,
    model: ServedModel,
    limits: LimitsConfig,
    hosted: HostedOffer = NO_HOSTED_TOOLS,
) -> Chat:
    """Reads the body of /chat/completions; `hosted` are the tools that this server runs.

    Raises InvalidRequest if fields contradict each other or exceed the limits of this server.
    """
    chat = read_shared_chat(request, request, request, model, limits, hosted=hosted)
    check_completion(request)
    num_logprobs = read_num_alternatives(request.top_logprobs, model, limits, param="top_logprobs")
    for name, value in (
        ("top_logprobs", request.top_logprobs),
        ("logprob_token_ids", request.logprob_token_ids),
    ):
        if value and not request.logprobs:
            raise InvalidRequest(f"needs logprobs to be true, given {value}", field=name)
    speculation = chat.options.speculation
    if request.prediction is not None:
        speculation = replace(
            speculation, prediction=read_prediction(request.prediction, request, model.engine.info)
        )
    options = replace(
        chat.options,
        speculation=speculation,
        num_logprobs=(num_logprobs or 0) if request.logprobs else None,
        num_prompt_logprobs=read_num_alternatives(
            request.prompt_logprobs, model, limits, param="prompt_logprobs"
        ),
        logprob_token_ids=request.logprob_token_ids,
        may_be_empty=request.prompt_logprobs is not None,
    )
    return dataclasses.replace(chat, options=options, reasoning_place=reasoning_place(request))


def read_shared_chat(
    body: GenerationFields,
    prompt_fields: ChatPromptFields,
    tool_fields: ToolFields,
    model: ServedModel,
    limits: LimitsConfig,
    *,
    max_output_tokens: int | None = None,
    hosted: HostedOffer = NO_HOSTED_TOOLS,
) -> Chat:
    """Reads the fields that all chat endpoints share.

    `body`, `prompt_fields` and `tool_fields` are three views of one body, because a struct can have
    only one base. `max_output_tokens` is the limit of the Responses API; it overrides other limits.
    `hosted` are the tools that this server runs.
    """
    options = read_options(body, model, limits)
    if max_output_tokens is not None:
        options = limit_tokens(options, max_output_tokens, param="max_output_tokens")
    tools = read_tools(
        tool_fields,
        guides_all=model.guides_tools,
        refuses_unknown=model.refuses_unknown_tools,
        hosted=hosted,
    )
    options = replace(
        options,
        tool_use=tools.use,
        continues_prompt=prompt_fields.continue_final_message or False,
        parses_output=True,
        warnings=tools.warnings,
    )
    rendering = chat_rendering(prompt_fields, tools=tools.definitions)
    return Chat(options, rendering, read_truncation(body, options.max_tokens), tools.names)
