"""Reads LMI's own schema: `inputs`, `parameters` and `stream`.

A list of `inputs` is a batch; its answer is a list.
"""

import secrets
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from ouzel.api.http.dialect import Answer
from ouzel.api.http.framing import JSON_LINES, SSE, Framing
from ouzel.api.lmi.defaults import fill_defaults
from ouzel.api.lmi.details import Shape, StandardAnswer
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import (
    Choosing,
    GenerationOptions,
    GenerationRequest,
    Prompt,
    ServedModel,
    Truncation,
    accept,
)
from ouzel.wire.decode import JsonObject, decode_object, log_ignored
from ouzel.wire.fields import CompletionFields, StopString
from ouzel.wire.options import (
    check_completion,
    check_num_logprobs,
    list_texts,
    read_options,
    read_truncation,
)
from ouzel.wire.validation_errors import show_value

# In this schema LMI ends streams of events without [DONE].
_SSE = msgspec.structs.replace(SSE, end=b"")

# Fields without a place in the answers of this schema, with their replacements.
_NOT_HERE = {
    "return_token_ids": "use details",
    "return_tokens_as_token_ids": "the tokens of details have ids",
    "stream_options": "use details",
}

Text = Annotated[str, Meta(min_length=1)]


class StandardRequest(msgspec.Struct, kw_only=True):
    inputs: Annotated[
        Text | Annotated[list[Text], Meta(min_length=1)],
        Meta(description="The prompt, or a batch of prompts."),
    ]
    parameters: Annotated[dict[str, object] | None, Meta(description="Generation parameters.")] = (
        None
    )
    stream: Annotated[bool | None, Meta(description="Sends a line for each token.")] = None
    adapters: Annotated[
        str | list[str] | None,
        Meta(
            description="An adapter for all inputs, or a list with an adapter for each; empty: "
            "none."
        ),
    ] = None


class Parameters(CompletionFields, kw_only=True):
    """The `parameters` of a body. If LMI's name and Ouzel's name of a field are set, LMI's wins."""

    max_new_tokens: Annotated[int, Meta(ge=1, description="LMI's name for max_tokens.")] | None = (
        None
    )
    stop_sequences: Annotated[
        StopString | Annotated[list[StopString], Meta(max_length=64)] | None,
        Meta(description="More texts for stop."),
    ] = None
    ignore_eos_token: Annotated[bool | None, Meta(description="LMI's name for ignore_eos.")] = None
    bad_sequences: (
        Annotated[list[StopString], Meta(max_length=128, description="More texts for bad_words.")]
        | None
    ) = None
    min_length: (
        Annotated[int, Meta(ge=0, description="The same as min_tokens; 1 has no effect.")] | None
    ) = None
    logprobs: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="No effect: details have the log probability of every token.",
            ),
        ]
        | None
    ) = None
    prompt_logprobs: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="No effect: decoder_input_details shows the prompt's tokens.",
            ),
        ]
        | None
    ) = None
    truncate: (
        Annotated[int, Meta(ge=1, description="Keeps this number of last tokens of the prompt.")]
        | None
    ) = None
    details: Annotated[
        bool | None, Meta(description="Returns tokens and finish reasons beside the text.")
    ] = None
    return_full_text: Annotated[
        bool | None, Meta(description="Returns the prompt before the text.")
    ] = None
    decoder_input_details: Annotated[
        bool | None, Meta(description="Returns the prompt's tokens; needs details.")
    ] = None
    top_n_tokens: (
        Annotated[int, Meta(ge=0, description="Alternatives per token; needs details or stream.")]
        | None
    ) = None
    output_formatter: Annotated[
        str | None, Meta(description="json; for a stream, jsonlines or sse.")
    ] = None


class StandardSchema:
    def __init__(self, model: ServedModel, limits: LimitsConfig, config: ServerConfig) -> None:
        self._model = model
        self._limits = limits
        self._default_max_tokens = config.lmi_default_max_tokens
        self._is_tgi = config.lmi_tgi_compat

    def prepare(
        self, fields: JsonObject, arrival_s: float, *, takes_events: bool
    ) -> tuple[list[GenerationRequest], Answer]:
        body = decode_object(fields, StandardRequest)
        parameters = self._parameters(body.parameters or {})
        is_stream = bool(parameters.stream if body.stream is None else body.stream)
        if not is_stream:
            parameters = _set_num_choices(parameters)
        framing = _framing(
            parameters, is_stream=is_stream, prefers_events=takes_events or self._is_tgi
        )
        options = self._options(parameters)
        shape = self._shape(
            parameters,
            options.choosing,
            is_batch=isinstance(body.inputs, list),
            is_stream=is_stream,
        )
        texts = body.inputs if isinstance(body.inputs, list) else [body.inputs]
        self._check(parameters, shape, texts)
        options = replace(
            options, num_logprobs=shape.num_top_tokens if shape.needs_logprobs else None
        )
        request_id = f"lmi-{secrets.token_hex(16)}"
        prompts = [self._render(text, parameters, options) for text in texts]
        try:
            requests = [
                accept(
                    options,
                    prompt,
                    self._model,
                    request_id=f"{request_id}-{position}",
                    arrival_s=arrival_s,
                )
                for position, prompt in enumerate(prompts)
            ]
        except InvalidRequest as error:
            raise _name_lmis_field(error, parameters) from error.__cause__
        return requests, StandardAnswer(shape, requests, texts, self._model, framing)

    def _parameters(self, parsed: JsonObject) -> Parameters:
        for name, instead in _NOT_HERE.items():
            if parsed.get(name):
                given = show_value(parsed[name])
                raise InvalidRequest(
                    f"is not a parameter of this schema ({instead}), given {given}", field=name
                )
        known = {name: value for name, value in parsed.items() if name not in _NOT_HERE}
        parameters = decode_object(fill_defaults(known, self._model), Parameters)
        if parameters.prompt_logprobs is not None and not parameters.decoder_input_details:
            log_ignored({"prompt_logprobs"})
        return _translate(parameters)

    def _options(self, parameters: Parameters) -> GenerationOptions:
        options = read_options(parameters, self._model, self._limits)
        check_completion(parameters)
        check_num_logprobs(parameters.top_n_tokens, self._limits, param="top_n_tokens")
        return replace(
            options,
            max_tokens=parameters.max_new_tokens or options.max_tokens,
            max_tokens_param="max_new_tokens"
            if parameters.max_new_tokens
            else options.max_tokens_param,
            takes_all_left=options.takes_all_left and not parameters.max_new_tokens,
            default_max_tokens=self._default_max_tokens,
            stop_strings=(*list_texts(parameters.stop), *list_texts(parameters.stop_sequences)),
            num_prompt_logprobs=0 if parameters.decoder_input_details else None,
        )

    def _shape(
        self, parameters: Parameters, choosing: Choosing, *, is_batch: bool, is_stream: bool
    ) -> Shape:
        return Shape(
            is_batch=is_batch,
            is_stream=is_stream,
            is_tgi=self._is_tgi,
            n=choosing.n,
            is_beam_search=choosing.beam_search is not None,
            has_details=self._is_tgi if parameters.details is None else parameters.details,
            shows_prompt=bool(parameters.return_full_text),
            num_top_tokens=parameters.top_n_tokens or 0,
            skips_special_tokens=parameters.skip_special_tokens is not False,
        )

    def _check(self, parameters: Parameters, shape: Shape, texts: Sequence[str]) -> None:
        num_sequences = max(shape.n, parameters.best_of or 1, parameters.num_beams or 1)
        most = max(
            min(self._limits.max_prompts, self._model.engine.max_admitted) // num_sequences, 1
        )
        if len(texts) > most:
            raise InvalidRequest(
                f"must have <= {most} entries of {num_sequences} sequences each, given "
                f"{len(texts)}",
                field="inputs",
            )
        if shape.is_stream and shape.is_batch:
            raise InvalidRequest(
                "must be a string when stream is true, given a list", field="inputs"
            )
        if shape.is_stream and shape.n > 1:
            raise InvalidRequest(f"must be 1 when stream is true, given {shape.n}", field="n")
        if parameters.decoder_input_details and not shape.has_details:
            raise InvalidRequest(
                "needs details to be true, given true", field="decoder_input_details"
            )
        if shape.num_top_tokens and not (shape.has_details or shape.is_stream):
            raise InvalidRequest(
                f"needs details to be true, given {shape.num_top_tokens}", field="top_n_tokens"
            )

    def _render(self, text: str, parameters: Parameters, options: GenerationOptions) -> Prompt:
        truncation = read_truncation(parameters, options.most_tokens)
        if parameters.truncate is not None:
            max_model_len = self._model.engine.info.max_model_len
            truncation = Truncation(min(parameters.truncate, max_model_len), keeps_end=True)
        return self._model.renderer.render_text(text, truncation=truncation, param="inputs")


def _translate(parameters: Parameters) -> Parameters:
    """Translates LMI's sampling fields. LMI samples only with do_sample or a temperature."""
    is_greedy = parameters.do_sample is False or (
        parameters.do_sample is None and parameters.temperature is None
    )
    own_ignore_eos = parameters.ignore_eos_token
    return replace(
        parameters,
        ignore_eos=parameters.ignore_eos if own_ignore_eos is None else own_ignore_eos,
        bad_words=[*(parameters.bad_words or []), *(parameters.bad_sequences or [])],
        temperature=0.0 if is_greedy else parameters.temperature,
        min_tokens=_min_length(parameters) or parameters.min_tokens,
        prompt_logprobs=None,
    )


def _min_length(parameters: Parameters) -> int:
    """Returns the minimal length, or 0. A length of 1 is LMI's default; its engines ignore it."""
    min_length = parameters.min_length or 0
    return min_length if min_length > 1 else 0


def _name_lmis_field(error: InvalidRequest, parameters: Parameters) -> InvalidRequest:
    return (
        error.at("min_length") if error.param == "min_tokens" and _min_length(parameters) else error
    )


def _set_num_choices(parameters: Parameters) -> Parameters:
    """Fills in the number of choices: by default LMI shows all sequences that are generated."""
    n = (
        parameters.n
        or parameters.num_return_sequences
        or parameters.best_of
        or parameters.num_beams
    )
    return replace(parameters, n=n)


def _framing(parameters: Parameters, *, is_stream: bool, prefers_events: bool) -> Framing:
    """Returns the framing of the answer.

    Raises InvalidRequest if its shape forbids the named framing.
    """
    name = parameters.output_formatter
    allowed = ("jsonlines", "sse") if is_stream else ("json",)
    if name is not None and name not in allowed:
        limit = " or ".join(allowed)
        raise InvalidRequest(
            f"must be {limit} when stream is {str(is_stream).lower()}, given {show_value(name)}",
            field="output_formatter",
        )
    return _SSE if name == "sse" or (name is None and prefers_events) else JSON_LINES
