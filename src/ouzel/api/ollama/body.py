"""Reads the fields that chats and prompts share, and turns them into the body of a chat of ours."""

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from ouzel.api.ollama.keep_alive import DURATION, read_seconds
from ouzel.api.ollama.model_name import check_name
from ouzel.api.ollama.options import ModelOptions
from ouzel.errors import InvalidRequest
from ouzel.generation import OutputForm, ServedModel
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject, decode_object, log_ignored
from ouzel.wire.unsupported import refuse_unsupported
from ouzel.wire.validation_errors import show_value

# fields of our other endpoints that are hints
_HINTS = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key", "priority"})
# options that some clients send beside `options`, under our names or Ollama's
_OPTIONS = {name: name for name in ModelOptions.__struct_fields__} | dict.fromkeys(
    ("max_tokens", "max_completion_tokens", "max_output_tokens"), "num_predict"
)
# the fields of Ollama's bodies that replace fields of ours
_INSTEAD = {name: f"options.{option}" for name, option in _OPTIONS.items()} | {
    "response_format": "format",
    "enable_thinking": "think",
    "thinking": "think",
    "reasoning_effort": "think",
    "continue_final_message": "messages",
}


class OllamaBody(msgspec.Struct, kw_only=True):
    model: Annotated[
        str | None, Meta(description="One of the served model names, with `:latest` or without.")
    ] = None
    stream: Annotated[bool | None, Meta(description="Sends lines of JSON; false: one object.")] = (
        None
    )
    format: Annotated[
        Literal["", "json"] | dict[str, object] | None,
        Meta(description="`json`, or a JSON schema for the whole answer."),
    ] = None
    options: Annotated[ModelOptions | None, Meta(description="Sampling options.")] = None
    think: Annotated[
        bool | Literal["low", "medium", "high", "max"] | None,
        Meta(
            description="Switches the model's reasoning, or sets its effort if the chat template "
            "reads it."
        ),
    ] = None
    keep_alive: (
        float
        | Annotated[
            str,
            Meta(
                max_length=40,
                pattern=DURATION,
                description="How long the model stays in memory without requests, if models come "
                "and go: seconds, or a duration like 5m; 0 unloads it, -1 keeps it.",
            ),
        ]
        | None
    ) = None
    truncate: Annotated[
        bool | None,
        Meta(
            description="true, the default, drops the oldest turns of a chat that does not fit; "
            "false refuses it."
        ),
    ] = None
    logprobs: Annotated[
        bool | None, Meta(description="Returns the log probability of every token.")
    ] = None
    top_logprobs: (
        Annotated[int, Meta(ge=0, description="Alternatives per token; needs logprobs.")] | None
    ) = None

    @property
    def unloads(self) -> bool:
        """Tells whether a request without a prompt would unload the model."""
        return self.keep_alive is not None and read_seconds(self.keep_alive) == 0

    @property
    def form(self) -> OutputForm | None:
        match self.format:
            case None | "":
                return None
            case "json":
                return OutputForm({"type": "json_object"}, "format")
            case schema:
                return OutputForm({"type": "json_schema", "json_schema": schema}, "format")


Body = TypeVar("Body", bound=OllamaBody)


def read_body(fields: JsonObject, body_type: type[Body], model: ServedModel) -> Body:
    """Decodes a body.

    Raises ModelNotFound, and InvalidRequest for other endpoints' fields that would change the
    answer.
    """
    own_fields = body_type.__struct_encode_fields__
    with_options = _join_options(fields)
    _refuse_others(with_options, own_fields)
    # Some fields are refused only if they are no option.
    refuse_unsupported(fields, own_fields={*own_fields, *_OPTIONS})
    body = decode_object(with_options, body_type)
    check_name(body.model, model.names)
    if body.keep_alive is not None and not model.comes_and_goes:
        log_ignored({"keep_alive"})
    return body


def _join_options(fields: JsonObject) -> JsonObject:
    """Moves options beside `options` into it. Its own values override them."""
    beside = {
        _OPTIONS[name]: value
        for name, value in fields.items()
        if name in _OPTIONS and value is not None
    }
    options = fields.get("options")
    if not beside or not isinstance(options, dict | None):
        return fields
    within = {name: value for name, value in (options or {}).items() if value is not None}
    return {name: value for name, value in fields.items() if name not in _OPTIONS} | {
        "options": beside | within
    }


def _refuse_others(fields: Mapping[str, object], own_fields: Collection[str]) -> None:
    for name, value in fields.items():
        is_others = (
            name in ChatCompletionRequest.__struct_encode_fields__ and name not in own_fields
        )
        if is_others and name not in _HINTS and value is not None:
            hint = f" (use {_INSTEAD[name]})" if name in _INSTEAD else ""
            raise InvalidRequest(
                f"is not a field of this endpoint{hint}, given {show_value(value)}", field=name
            )


def name_ollamas_field(error: InvalidRequest) -> InvalidRequest:
    """Returns the error with the field of Ollama's body."""
    param = error.param or ""
    field = re.split(r"\W", param, maxsplit=1)[0]
    return error.at(_INSTEAD[field] + param.removeprefix(field)) if field in _INSTEAD else error
