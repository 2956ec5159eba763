"""Reads a body in Anthropic's form as a chat of ours, with the features of its API."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from ouzel.api.anthropic.context_edits import apply_edits
from ouzel.api.anthropic.context_management import AppliedEdits, Edit
from ouzel.api.anthropic.foreign_fields import drop_foreign_fields
from ouzel.api.anthropic.history import History
from ouzel.api.anthropic.hosted_tools import NO_HOSTED_TOOLSET, HostedToolset
from ouzel.api.anthropic.request import MessagesRequest, ThinkingDisabled, ThinkingEnabled
from ouzel.api.anthropic.tool_changes import apply_tool_changes
from ouzel.api.anthropic.tools import read_choice, read_functions
from ouzel.api.anthropic.turn import Turn
from ouzel.api.anthropic.unreadable import refuse_unreadable
from ouzel.config import LimitsConfig
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.generation import OutputForm, Prompt, PromptTooLong, ServedModel
from ouzel.sampling import SamplingFields
from ouzel.wire.chat import Chat, read_chat
from ouzel.wire.chat_prompt import ReasoningEffort
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, decode_object
from ouzel.wire.offered_tools import NO_HOSTED_TOOLS, HostedOffer, assign_names, offered_tools
from ouzel.wire.options import check_model
from ouzel.wire.tools import Tool

logger = logging.getLogger(__name__)

_SWITCHES = frozenset({"enable_thinking", "thinking"})
# A longer text is not tokenized to count it: tokenizing many megabytes takes seconds.
_COUNTED_CHARS_PER_TOKEN = 64
_USUAL_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """A request that has been read. `chat` has everything but the messages."""

    history: History
    chat: Chat
    # context edits; None if the request manages no context
    edits: Sequence[Edit] | None

    def edit_context(self, model: ServedModel) -> AppliedEdits | None:
        """Applies the context edits.

        Raises InvalidRequest if the chat template refuses the messages.
        """
        if self.edits is None:
            return None
        self.history.turns, applied = apply_edits(
            self.edits, self.history.turns, partial(self._num_tokens, model)
        )
        return AppliedEdits(applied)

    def num_tokens(self, model: ServedModel) -> int:
        """Counts the prompt's tokens, also beyond the context; a very long prompt is estimated."""
        return self._num_tokens(model, self.history.turns)

    def _num_tokens(self, model: ServedModel, turns: Sequence[Turn]) -> int:
        messages = [turn.message() for turn in turns]
        try:
            _, token_ids = model.renderer.encode_chat(
                messages, self.chat.rendering, check=partial(_check_len, model)
            )
        except PromptTooLong as error:
            return error.num_tokens
        except InvalidRequest as error:
            raise self.history.restore_field(error) from error
        return len(token_ids)

    def prompt(self, model: ServedModel, further: Sequence[JsonObject] = ()) -> Prompt:
        """Renders the prompt; `further` messages follow the messages of the request.

        Raises InvalidRequest, and ContextLengthExceeded in the words that Anthropic's clients look
        for.
        """
        try:
            return model.renderer.render_chat(
                [*self.history.chat_messages(), *further], self.chat.rendering
            )
        except PromptTooLong as error:
            raise _too_long(error) from error
        except InvalidRequest as error:
            raise self.history.restore_field(error) from error


def decode_messages(
    fields: JsonObject, body_type: type[MessagesRequest], model: ServedModel
) -> MessagesRequest:
    """Decodes a body, after a check of its blocks and foreign fields. Raises InvalidRequest."""
    refuse_unreadable(fields, supports_images=model.renderer.supports_images)
    return decode_object(drop_foreign_fields(fields, body_type.__struct_encode_fields__), body_type)


def read_messages(
    body: MessagesRequest,
    model: ServedModel,
    limits: LimitsConfig,
    toolset: HostedToolset = NO_HOSTED_TOOLSET,
    offer: HostedOffer = NO_HOSTED_TOOLS,
) -> ReadMessages:
    """Translates the body of POST /messages to a chat request, without rendering the messages.

    `toolset` are the tools that this server runs, and `offer` their functions, when they are open.
    Raises InvalidRequest for fields that contradict each other, exceed a limit of this server, or
    ask for something that the model does not support.
    """
    check_model(body.model, model)
    template = model.renderer.chat_template
    has_later_system = template is not None and template.capabilities.later_system_role
    refuses_hosted = model.refuses_unknown_tools
    declared = body.tools or ()
    tools, warnings = read_functions(
        declared,
        body.mcp_servers or (),
        refuses_hosted=refuses_hosted,
        toolset=toolset,
        hints=offer.hints,
    )
    tools = apply_tool_changes(tools, declared, body.messages, refuses_hosted=refuses_hosted)
    offered, _ = offered_tools(tools, refuses_unknown=refuses_hosted, hosted=offer)
    history = History(
        body.system,
        body.messages,
        has_later_system=has_later_system,
        tool_names=assign_names(offered),
    )
    history.check_continuation()
    if not model.renderer.supports_images:
        history.refuse_pictures(model.renderer.readable.describe_input("image"))
    if toolset.entries and history.is_unfinished:
        raise InvalidRequest(
            "must not be the assistant's text beside tools that this server runs",
            field=history.turns[-1].path,
        )
    has_tools = bool(offered)
    chat = read_chat(
        _chat_request(body, tools, model, is_unfinished=history.is_unfinished, has_tools=has_tools),
        model,
        limits,
        offer,
    )
    options = msgspec.structs.replace(
        chat.options, form=_form(body), may_be_empty=True, warnings=warnings
    )
    edits = None if body.context_management is None else body.context_management.edits or ()
    return ReadMessages(history, replace(chat, options=options), edits)


def _chat_request(
    body: MessagesRequest,
    tools: list[Tool],
    model: ServedModel,
    *,
    is_unfinished: bool,
    has_tools: bool,
) -> ChatCompletionRequest:
    """Returns the body as a chat completion request, without messages."""
    tool_choice, are_parallel = read_choice(body.tool_choice)
    sampling = {name: getattr(body, name) for name in SamplingFields.__struct_fields__}
    template = model.renderer.chat_template
    variables = (
        frozenset[str]()
        if template is None
        else template.variables_read(tools=[{}] if has_tools else None)
    )
    return ChatCompletionRequest(
        model=body.model,
        messages=None,
        max_tokens=body.max_tokens,
        thinking_token_budget=_budget(body),
        stop=list(body.stop_sequences) if body.stop_sequences else None,
        stream=body.stream,
        tools=tools or None,
        tool_choice=tool_choice,
        parallel_tool_calls=are_parallel,
        continue_final_message=is_unfinished,
        enable_thinking=not isinstance(body.thinking, ThinkingDisabled | None)
        if variables & _SWITCHES
        else None,
        reasoning_effort=_effort(body, variables),
        **sampling,
    )


def _budget(body: MessagesRequest) -> int | None:
    budget = body.thinking.budget_tokens if isinstance(body.thinking, ThinkingEnabled) else None
    if budget is not None and body.max_tokens is not None and budget >= body.max_tokens:
        field = "thinking.budget_tokens"
        raise InvalidRequest(
            f"must be < {body.max_tokens}, which is max_tokens, given {budget}", field=field
        )
    return budget


def _effort(body: MessagesRequest, variables: frozenset[str]) -> ReasoningEffort | None:
    effort = None if body.output_config is None else body.output_config.effort
    if effort is None or "reasoning_effort" in variables:
        return effort
    logger.info("accepted without effect: output_config.effort")
    return None


def _form(body: MessagesRequest) -> OutputForm | None:
    own = None if body.output_config is None else body.output_config.format
    if own is not None and body.output_format is not None and body.output_format != own:
        raise InvalidRequest("must not be given beside output_config.format", field="output_format")
    name = "output_config.format" if own is not None else "output_format"
    output_format = own or body.output_format
    if output_format is None:
        return None
    return OutputForm(
        {"type": "json_schema", "json_schema": output_format.schema}, f"{name}.schema"
    )


def _check_len(model: ServedModel, text: str) -> None:
    """Raises PromptTooLong, with an estimate, for a text far longer than the model's context."""
    max_model_len = model.engine.info.max_model_len
    if len(text) > _COUNTED_CHARS_PER_TOKEN * max_model_len:
        raise PromptTooLong(
            f"resulted in more than {max_model_len} tokens, of {len(text)} characters",
            num_tokens=len(text) // _USUAL_CHARS_PER_TOKEN,
            max_model_len=max_model_len,
            field="messages",
        )


def _too_long(error: PromptTooLong) -> ContextLengthExceeded:
    most = error.max_model_len - 1  # the answer needs one token at least
    return ContextLengthExceeded(
        f"prompt is too long: {error.num_tokens} tokens > {most} maximum", param="messages"
    )
