"""Renders the input of a response as a chat prompt; errors name the fields of the response body."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ouzel.errors import InvalidRequest
from ouzel.generation import ChatRendering, Prompt, ServedModel
from ouzel.responses.checked_body import CheckedBody
from ouzel.responses.input_items import InputItem, InputMessage, KnownTools, read_messages
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.newest_turns import render_newest

_NEUTRAL_VERBOSITY = "medium"
_MESSAGE_PATH = re.compile(r"messages(?:\[(\d+)\])?")


def render_input(
    checked_body: CheckedBody, items: Iterable[InputItem], model: ServedModel
) -> Prompt:
    """Renders the prompt; `items` are the earlier items and the items of the input.

    With `truncation: "auto"` the oldest turns are left out until the prompt fits.
    """
    fields, max_tokens = checked_body.fields, checked_body.options.max_tokens
    truncation = checked_body.chat.truncation
    rendering, own_names = _rendering(fields, checked_body.chat.rendering)

    def render(messages: Sequence[InputMessage]) -> Prompt:
        try:
            return model.renderer.render_chat(
                [each.fields for each in messages], rendering, truncation=truncation
            )
        except InvalidRequest as error:
            raise _in_own_words(error, messages, own_names) from error

    tools = KnownTools(checked_body.chat.tool_names, refuses_unknown=model.refuses_unknown_tools)
    messages = read_messages(items, fields.instructions, tools, readable=model.renderer.readable)
    if fields.truncation != "auto":
        return render(messages)
    if truncation is not None:
        raise InvalidRequest('must not be "auto" beside truncate_prompt_tokens', field="truncation")
    return render_newest(
        messages,
        render,
        role_of=lambda message: message.fields["role"],
        max_model_len=model.engine.info.max_model_len,
        max_tokens=max_tokens,
    )


def _rendering(
    fields: ResponsesRequest, rendering: ChatRendering
) -> tuple[ChatRendering, dict[str, str]]:
    """Adds `reasoning.effort` and `text.verbosity` to the rendering.

    Also returns the names of fields for errors: name in the rendering -> name in the body.
    """
    own_names: dict[str, str] = {}
    effort = None if fields.reasoning is None else fields.reasoning.effort
    if effort is not None:
        if fields.reasoning_effort not in (None, effort):
            raise InvalidRequest(
                f"must be the same as reasoning.effort, given {fields.reasoning_effort}",
                field="reasoning_effort",
            )
        rendering = replace(rendering, reasoning_effort=effort)
        own_names["reasoning_effort"] = "reasoning.effort"
    verbosity = None if fields.text is None else fields.text.verbosity
    if verbosity not in (None, _NEUTRAL_VERBOSITY):
        if rendering.template_kwargs.get("verbosity", verbosity) != verbosity:
            raise InvalidRequest(
                f"must be the same as verbosity in chat_template_kwargs, given {verbosity}",
                field="text.verbosity",
            )
        rendering = replace(rendering, hints={"verbosity": verbosity})
    return rendering, own_names


def _in_own_words(
    error: InvalidRequest, messages: Sequence[InputMessage], own_names: dict[str, str]
) -> InvalidRequest:
    """Replaces a path of the rendered messages in the error by the field of the client's body.

    `own_names` maps other names of the renderer to fields of the body.
    """
    param = error.param or ""
    if param in own_names:
        return error.at(own_names[param])
    match = _MESSAGE_PATH.match(param)
    if match is None:
        return error
    own = "input" if match[1] is None else messages[int(match[1])].path
    is_history = not own.startswith("input")  # the client did not send this item
    return error.at(own + param[match.end() :], param=own if is_history else None)
