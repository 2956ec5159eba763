"""LMI's own schema: `inputs`, `parameters`, `stream`. An `inputs` list is a batch, answered with a list."""

import secrets
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.http.dialect import Answer
from ouzel.api.http.framing import JSON_LINES, SSE, Framing
from ouzel.api.lmi.details import Shape, StandardAnswer
from ouzel.api.lmi.given import with_defaults
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, Prompt, ServedModel, Truncation
from ouzel.wire.choice_fields import choosing_of
from ouzel.wire.decode import JsonObject, decode_object, log_ignored
from ouzel.wire.fields import (
    CompletionFields,
    StopString,
    check_completion,
    check_num_logprobs,
    generation_request,
    max_tokens_of,
    truncation_of,
)
from ouzel.wire.response_form import output_form
from ouzel.wire.validation_errors import shown

_SSE = msgspec.structs.replace(SSE, end=b"")  # LMI ends this schema's events without a [DONE]

# What the answers of this schema have no place for; with what to use instead.
_NOT_HERE = {
    "logprobs": "use details, or top_n_tokens",
    "prompt_logprobs": "use decoder_input_details",
    "return_token_ids": "use details",
    "return_tokens_as_token_ids": "the tokens of details have ids",
    "stream_options": "use details",
}

Text = Annotated[str, Meta(min_length=1)]


class StandardRequest(msgspec.Struct, kw_only=True):
    inputs: Annotated[
        Text | Annotated[list[Text], Meta(min_length=1)], Meta(description="The prompt, or a batch of prompts.")
    ]
    parameters: Annotated[dict[str, object] | None, Meta(description="How to generate.")] = None
    stream: Annotated[bool | None, Meta(description="Sends a line for each token.")] = None
    adapters: Annotated[str | list[str] | None, Meta(description="Only empty names: this server has none.")] = None


class Parameters(CompletionFields, kw_only=True):
    """LMI's names beside ours; of two names for one thing LMI's counts."""

    max_new_tokens: Annotated[int, Meta(ge=1, description="LMI's name of max_tokens.")] | None = None
    stop_sequences: Annotated[
        StopString | Annotated[list[StopString], Meta(max_length=64)] | None, Meta(description="Joins stop.")
    ] = None
    ignore_eos_token: Annotated[bool | None, Meta(description="LMI's name of ignore_eos.")] = None
    bad_sequences: Annotated[list[StopString], Meta(max_length=128, description="Joins bad_words.")] | None = None
    truncate: Annotated[int, Meta(ge=1, description="Keeps so many tokens of the prompt, the last ones.")] | None = None
    details: Annotated[bool | None, Meta(description="Tokens and finish reasons beside the text.")] = None
    return_full_text: Annotated[bool | None, Meta(description="Puts the prompt before the text.")] = None
    decoder_input_details: Annotated[bool | None, Meta(description="The prompt's tokens; needs details.")] = None
    top_n_tokens: Annotated[int, Meta(ge=0, description="Alternatives per token; needs details or stream.")] | None = (
        None
    )
    output_formatter: Annotated[str | None, Meta(description="json; of a stream jsonlines or sse.")] = None


class StandardSchema:
    def __init__(self, model: ServedModel, limits: LimitsConfig, config: ServerConfig) -> None:
        self._model = model
        self._limits = limits
        self._default_max_tokens = config.lmi_default_max_tokens
        self._is_tgi = config.lmi_tgi_compat

    def prepare(
        self, given: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]:
        body, unknown = decode_object(given, StandardRequest)
        log_ignored(unknown)
        _refuse_adapters(body.adapters)
        asked = self._parameters(body.parameters or {})
        is_batch = isinstance(body.inputs, list)
        texts = body.inputs if isinstance(body.inputs, list) else [body.inputs]
        is_stream = bool(asked.stream if body.stream is None else body.stream)
        if asked.n is None and not is_stream:
            asked.n = asked.num_return_sequences or asked.best_of or asked.num_beams  # LMI shows all that there are
        framing = _framing(asked, is_stream=is_stream, prefers_events=takes_events or self._is_tgi)
        shape = self._shape(asked, is_batch=is_batch, is_stream=is_stream)
        self._check(asked, shape, texts)
        request_id = f"lmi-{secrets.token_hex(16)}"
        requests = [
            self._request(asked, self._render(text, asked), shape, f"{request_id}-{position}", arrival_s)
            for position, text in enumerate(texts)
        ]
        return requests, StandardAnswer(shape, requests, texts, self._model, framing)

    def _parameters(self, given: JsonObject) -> Parameters:
        for name, instead in _NOT_HERE.items():
            if given.get(name):
                raise InvalidRequest(
                    f"{name} is not a parameter of this schema ({instead}), given {shown(given[name])}", param=name
                )
        asked, unknown = decode_object(with_defaults(given, self._model), Parameters)
        log_ignored(unknown - _NOT_HERE.keys())
        asked.max_tokens = asked.max_new_tokens or max_tokens_of(asked)[1]
        asked.stop = [*_texts(asked.stop), *_texts(asked.stop_sequences)]
        asked.ignore_eos = asked.ignore_eos if asked.ignore_eos_token is None else asked.ignore_eos_token
        asked.bad_words = [*(asked.bad_words or []), *(asked.bad_sequences or [])]
        if asked.do_sample is False or (asked.do_sample is None and asked.temperature is None):
            asked.temperature = 0.0
        return asked

    def _shape(self, asked: Parameters, *, is_batch: bool, is_stream: bool) -> Shape:
        choosing = choosing_of(asked)
        return Shape(
            is_batch=is_batch,
            is_stream=is_stream,
            is_tgi=self._is_tgi,
            n=choosing.n,
            is_beam_search=choosing.beam_search is not None,
            has_details=self._is_tgi if asked.details is None else asked.details,
            shows_prompt=bool(asked.return_full_text),
            num_top_tokens=asked.top_n_tokens or 0,
            skips_special_tokens=asked.skip_special_tokens is not False,
        )

    def _check(self, asked: Parameters, shape: Shape, texts: Sequence[str]) -> None:
        check_completion(asked, self._model, self._limits)
        check_num_logprobs(asked.top_n_tokens, self._limits, param="top_n_tokens")
        num_sequences = max(shape.n, asked.best_of or 1, asked.num_beams or 1)
        most = max(min(self._limits.max_prompts, self._model.engine.max_admitted) // num_sequences, 1)
        if len(texts) > most:
            raise InvalidRequest(
                f"inputs must have <= {most} entries of {num_sequences} sequences each, given {len(texts)}",
                param="inputs",
            )
        if shape.is_stream and shape.is_batch:
            raise InvalidRequest("inputs must be a string when stream is true, given a list", param="inputs")
        if shape.is_stream and shape.n > 1:
            raise InvalidRequest(f"n must be 1 when stream is true, given {shape.n}", param="n")
        if asked.decoder_input_details and not shape.has_details:
            raise InvalidRequest(
                "decoder_input_details needs details to be true, given true", param="decoder_input_details"
            )
        if shape.num_top_tokens and not (shape.has_details or shape.is_stream):
            raise InvalidRequest(
                f"top_n_tokens needs details to be true, given {shape.num_top_tokens}", param="top_n_tokens"
            )

    def _render(self, text: str, asked: Parameters) -> Prompt:
        max_model_len = self._model.engine.info.max_model_len
        truncation = truncation_of(asked, max_model_len, asked.max_tokens or self._default_max_tokens)
        if asked.truncate is not None:
            truncation = Truncation(min(asked.truncate, max_model_len), keeps_end=True)
        return self._model.renderer.render_text(text, truncation=truncation, param="inputs")

    def _request(
        self, asked: Parameters, prompt: Prompt, shape: Shape, request_id: str, arrival_s: float
    ) -> GenerationRequest:
        return generation_request(
            asked,
            self._model,
            prompt,
            request_id=request_id,
            max_tokens=("max_new_tokens", asked.max_tokens),
            form=output_form(asked),
            default_max_tokens=self._default_max_tokens,
            num_logprobs=shape.num_top_tokens if shape.needs_logprobs else None,
            num_prompt_logprobs=0 if asked.decoder_input_details else None,
            continues_prompt=True,
            parses_output=False,
            arrival_s=arrival_s,
        )


def _texts(stop: str | list[str] | None) -> list[str]:
    return [stop] if isinstance(stop, str) else stop or []


def _refuse_adapters(adapters: str | list[str] | None) -> None:
    for name in [adapters] if isinstance(adapters, str) else adapters or []:
        if name:
            raise InvalidRequest(f"Adapter {name[:100]} is not registered: this server has none", param="adapters")


def _framing(asked: Parameters, *, is_stream: bool, prefers_events: bool) -> Framing:
    """Of the stream. Asked for by name, it must be one that the answer can have."""
    name = asked.output_formatter
    allowed = ("jsonlines", "sse") if is_stream else ("json",)
    if name is not None and name not in allowed:
        limit = " or ".join(allowed)
        raise InvalidRequest(
            f"output_formatter must be {limit} when stream is {str(is_stream).lower()}, given {shown(name)}",
            param="output_formatter",
        )
    return _SSE if name == "sse" or (name is None and prefers_events) else JSON_LINES
