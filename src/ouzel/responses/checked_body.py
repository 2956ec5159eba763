"""Checks the body of a response against the limits of the server and reads its chat options."""

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationOptions, ServedModel
from ouzel.responses.hosted.kinds import Entry
from ouzel.responses.includable import LOGPROBS, log_never_present
from ouzel.responses.input_items import InputItem
from ouzel.responses.items.listed_tools import decode_tools
from ouzel.responses.request import ResponsesRequest, find_hints, shows_logprobs
from ouzel.responses.templates.filling import FilledTemplate
from ouzel.responses.text_format import choose_form
from ouzel.wire.chat import Chat, read_shared_chat
from ouzel.wire.offered_tools import NO_HOSTED_TOOLS, HostedOffer
from ouzel.wire.options import check_num_logprobs
from ouzel.wire.tools import Choice, FunctionCall, FunctionDefinition, Tool

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedBody:
    """The fields of a body that passed all checks, and the chat that they ask for."""

    fields: ResponsesRequest
    chat: Chat
    hosted: Sequence[Entry] = ()  # the entries of `tools` that this server runs
    template: FilledTemplate | None = None  # None for a body without `prompt`

    @property
    def options(self) -> GenerationOptions:
        return self.chat.options

    @property
    def template_items(self) -> list[InputItem]:
        """Returns the messages of the prompt template, which come before the input."""
        messages = () if self.template is None else self.template.messages
        return [InputItem(message, "prompt") for message in messages]


def check_body(
    fields: ResponsesRequest,
    model: ServedModel,
    limits: LimitsConfig,
    *,
    has_store: bool,
    hosted: HostedOffer = NO_HOSTED_TOOLS,
) -> CheckedBody:
    """Checks all fields that can be checked without the store, and reads the chat options.

    `hosted` are the tools that this server runs.
    A missing previous response or conversation is found later. Raises InvalidRequest for fields
    that contradict each other or that this server does not support.
    """
    chat = read_shared_chat(
        fields,
        fields,
        _ToolFields.of(fields),
        model,
        limits,
        max_output_tokens=fields.max_output_tokens,
        hosted=hosted,
    )
    _check_shown(fields, limits)
    _check_choices(fields, chat.options, runs_tools=bool(hosted.functions))
    _check_keeping(fields, has_store=has_store)
    if fields.context_management and fields.continue_final_message:
        raise InvalidRequest(
            "must not be given beside continue_final_message", field="context_management"
        )
    _log_hints(fields)
    options = replace(
        chat.options,
        form=choose_form(None if fields.text is None else fields.text.format, chat.options.form),
        num_logprobs=(fields.top_logprobs or 0) if shows_logprobs(fields) else None,
    )
    return CheckedBody(fields, dataclasses.replace(chat, options=options))


def limit_to_prompt(checked_body: CheckedBody) -> CheckedBody:
    """Returns a copy that computes the prompt and generates nothing.

    The prefix cache then has the prompt, so a response that continues it begins sooner.
    """
    options = replace(
        checked_body.options, max_tokens=0, max_tokens_param="generate", may_be_empty=True
    )
    return dataclasses.replace(
        checked_body, chat=dataclasses.replace(checked_body.chat, options=options)
    )


def _check_shown(fields: ResponsesRequest, limits: LimitsConfig) -> None:
    if fields.top_logprobs is not None:
        check_num_logprobs(fields.top_logprobs, limits, param="top_logprobs")
    if fields.top_logprobs and not shows_logprobs(fields):
        limit = f'needs include to have "{LOGPROBS}"'
        raise InvalidRequest(f"{limit}, given {fields.top_logprobs}", field="top_logprobs")


def _check_choices(
    fields: ResponsesRequest, options: GenerationOptions, *, runs_tools: bool
) -> None:
    num_choices = options.choosing.n
    for name, is_wanted in (
        ("stream", fields.stream),
        ("return_token_ids", fields.return_token_ids),
        ("tools that this server runs", runs_tools),
    ):
        if is_wanted and num_choices > 1:
            field = "n" if fields.n is not None else "num_return_sequences"
            raise InvalidRequest(
                f"must be 1 beside {name} in responses, given {num_choices}", field=field
            )
    if fields.stream_options is not None and not fields.stream:
        raise InvalidRequest("needs stream to be true", field="stream_options")


def _check_keeping(fields: ResponsesRequest, *, has_store: bool) -> None:
    for field, is_wanted in (("store", fields.store), ("background", fields.background)):
        if is_wanted and not has_store:
            raise InvalidRequest(
                "must be false: this server stores nothing, given true", field=field
            )
    for field, is_wanted in (
        ("conversation", fields.conversation is not None),
        ("background", fields.background),
    ):
        if is_wanted and fields.store is False:
            raise InvalidRequest("needs store to be true, given false", field=field)


def _log_hints(fields: ResponsesRequest) -> None:
    log_never_present(fields.include or [])
    names = ", ".join(find_hints(fields))
    if names:
        logger.info("taken as hints: %s", names)


class _ToolFields(msgspec.Struct):
    """The tool fields; the old fields `functions` and `function_call` are always empty."""

    tools: Sequence[Tool] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    enable_tool_guided_generation: bool | None
    functions: list[FunctionDefinition] | None = None
    function_call: FunctionCall = None

    @classmethod
    def of(cls, fields: ResponsesRequest) -> "_ToolFields":
        tools = None if fields.tools is None else decode_tools(fields.tools)
        return cls(
            tools,
            fields.tool_choice,
            fields.parallel_tool_calls,
            fields.enable_tool_guided_generation,
        )
