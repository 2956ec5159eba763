"""Checks bodies in OVMS's order, and translates their fields by OVMS's meaning."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import TypeVar

from msgspec.structs import replace

from ouzel.api.ovms.errors import NotARequest
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import GenerationOptions
from ouzel.wire.chat import Chat
from ouzel.wire.decode import JsonObject, decode_object, log_ignored, parse_object
from ouzel.wire.fields import CompletionFields, GenerationFields

_OF_SAMPLING = ("temperature", "top_p", "top_k", "min_p")
_OF_BEAM_SEARCH = ("length_penalty",)
_OF_BEAM_GROUPS = ("diversity_penalty",)

# variables of a chat template
_SWITCHES = frozenset({"enable_thinking", "thinking", "reasoning_effort"})

Body = TypeVar("Body", bound=GenerationFields)
Completion = TypeVar("Completion", bound=CompletionFields)


def read_fields(
    parsed: JsonObject, body_type: type[Completion], model_names: Collection[str]
) -> Completion:
    """Decodes a body. Raises NotARequest and ModelNotFound, in OVMS's order."""
    check_model_and_stream(parsed, model_names)
    return translate_fields(decode_object(parsed, body_type))


def check_model_and_stream(parsed: JsonObject, model_names: Collection[str]) -> None:
    """Checks the fields that OVMS reads before a model reads the body.

    Raises NotARequest and ModelNotFound.
    """
    if "model" not in parsed:
        raise NotARequest("model field is missing in JSON body", param="model")
    if not isinstance(parsed["model"], str):
        raise NotARequest("model field is not a string", param="model")
    if not isinstance(parsed.get("stream"), bool | None):
        raise NotARequest("stream field is not a boolean", param="stream")
    if parsed["model"] not in model_names:
        raise ModelNotFound(f"the model {parsed['model'][:100]!r} does not exist", param="model")


def parse_body(body: bytes) -> JsonObject:
    """Parses a body. Raises NotARequest."""
    try:
        return parse_object(body)
    except InvalidRequest as error:
        if error.param is not None:
            raise  # the error of one field
        match error.__cause__:
            case None:
                raise NotARequest("JSON body must be an object") from error
            case RecursionError():
                raise NotARequest("JSON body exceeds maximum nesting depth") from error
            case _:
                raise NotARequest("Cannot parse JSON body") from error


def apply_ovms_meaning(chat: Chat, body: GenerationFields) -> Chat:
    """Returns a chat with OVMS's meaning of `body`, for any endpoint.

    A template variable that the chat template does not read has no effect. With
    `skip_special_tokens: false` the output is shown as the model writes it: calls and reasoning
    stay in the text. A grammar still constrains forced calls and forms.
    """
    options: GenerationOptions = replace(
        chat.options, shows_raw_output=body.skip_special_tokens is False
    )
    rendering = dataclasses.replace(chat.rendering, drops_unread=True)
    return dataclasses.replace(chat, options=options, rendering=rendering)


def translate_fields(body: Body) -> Body:
    """Reads `best_of` as a number of beams, and shows the stop string in streams.

    As OVMS documents, sampling fields are ignored in a beam search, and beam search fields outside
    of it. OVMS has one group of beams, so `diversity_penalty` has no effect.
    """
    is_best_of = body.best_of not in (None, 1)
    unread: tuple[str, ...] = ()
    if is_best_of:
        unread = _OF_SAMPLING
    elif not (body.use_beam_search or body.num_beams):
        unread = _OF_BEAM_SEARCH
    if (body.num_beam_groups or 1) == 1:
        unread += _OF_BEAM_GROUPS
    dropped = {name for name in unread if getattr(body, name) is not None}
    log_ignored(dropped)
    shows_stop = bool(body.stream and body.stop and body.include_stop_str_in_output is None)
    return replace(
        body,
        use_beam_search=is_best_of or body.use_beam_search,
        include_stop_str_in_output=shows_stop or body.include_stop_str_in_output,
        **dict.fromkeys(dropped),
    )


def switches_reasoning(template_kwargs: Mapping[str, object] | None) -> bool:
    """Tells whether template variables switch reasoning; then the effort is ignored."""
    names = {name for name, value in (template_kwargs or {}).items() if value is not None}
    return bool(names & _SWITCHES)
