"""The request fields that every generating endpoint shares, and what they become."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import (
    GenerationRequest,
    OutputForm,
    Prompt,
    ServedModel,
    ToolUse,
    Truncation,
    fit_beams,
    fit_max_tokens,
    resolve_sampling,
)
from ouzel.wire.choice_fields import ChoiceFields, Choosing, check_choices, choosing_of, width_field
from ouzel.wire.response_form import (
    Choices,
    GrammarText,
    Pattern,
    ResponseFormat,
    Schema,
    StructuredOutputs,
)

StopString = Annotated[str, Meta(min_length=1, max_length=256, description="A text that ends the output.")]


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    include_usage: Annotated[bool | None, Meta(description="A last chunk with the usage.")] = None
    continuous_usage_stats: Annotated[bool | None, Meta(description="Every chunk has the usage so far.")] = None
    include_obfuscation: Annotated[bool | None, Meta(description="Only false is supported.")] = None


class GenerationFields(ChoiceFields, kw_only=True):
    """`None` is "not given"."""

    model: Annotated[str, Meta(description="One of the served model names.")]
    max_tokens: (
        Annotated[
            int,
            Meta(ge=0, description="Limit of generated tokens; 0 only computes the prompt, to score it."),
        ]
        | None
    ) = None
    max_completion_tokens: Annotated[int, Meta(ge=0, description="The same as max_tokens, and stronger.")] | None = None
    stop: StopString | Annotated[list[StopString], Meta(max_length=64)] | None = None
    include_stop_str_in_output: Annotated[bool | None, Meta(description="Shows what ended the output.")] = None
    skip_special_tokens: Annotated[bool | None, Meta(description="Leaves special tokens out of the text.")] = None
    truncate_prompt_tokens: (
        Annotated[int, Meta(ge=-1, description="Keeps so many prompt tokens; -1: what fits beside max_tokens.")] | None
    ) = None
    truncation_side: Annotated[Literal["left", "right"] | None, Meta(description="Where the prompt is cut.")] = None
    return_tokens_as_token_ids: Annotated[
        bool | None, Meta(description='Tokens in logprobs are "token_id:123" rather than texts.')
    ] = None
    spaces_between_special_tokens: Annotated[
        bool | None, Meta(description="False only with tokenizers that write no spaces between special tokens.")
    ] = None
    stream: Annotated[bool | None, Meta(description="Sends chunks as server-sent events.")] = None
    priority: Annotated[int, Meta(ge=-(2**31), lt=2**31, description="Smaller goes first.")] | None = None
    cache_salt: (
        Annotated[str, Meta(max_length=256, description="Cached prompts are shared only under the same salt.")] | None
    ) = None
    response_format: ResponseFormat | None = None
    structured_outputs: Annotated[
        StructuredOutputs | None, Meta(description="A form of the output, as vLLM takes it.")
    ] = None
    guided_json: Schema = None
    guided_regex: Pattern | None = None
    guided_choice: Choices | None = None
    guided_grammar: GrammarText | None = None
    # For the caller's own records; nothing here depends on them.
    user: Annotated[str | None, Meta(description="Who asks; not used.")] = None
    metadata: Annotated[dict[str, str], Meta(max_length=16, description="Labels of the request; not used.")] | None = (
        None
    )
    safety_identifier: Annotated[str | None, Meta(description="Who asks; not used.")] = None
    prompt_cache_key: Annotated[
        str | None, Meta(description="A routing hint; one server has one cache, so there is nothing to route.")
    ] = None


class CompletionFields(GenerationFields, kw_only=True):
    """Of the answers that have choices: chat and text completions."""

    prompt_logprobs: (
        Annotated[
            int,
            Meta(
                ge=0,
                description="Returns the log probability of every prompt token, with so many alternatives; "
                "at most the server's max_logprobs.",
            ),
        ]
        | None
    ) = None
    return_token_ids: Annotated[bool | None, Meta(description="Shows the ids of prompt and output.")] = None
    stream_options: Annotated[StreamOptions | None, Meta(description="Only with stream.")] = None


def check_model(name: str | None, model: ServedModel) -> None:
    """None is the served model, where `model` may be left out."""
    if name is not None and name not in model.names:
        names = ", ".join(model.names)
        raise ModelNotFound(f"the model {name[:100]!r} does not exist; this server has: {names}", param="model")


def check_limits(body: GenerationFields, model: ServedModel, limits: LimitsConfig) -> None:
    """What depends on this server rather than on the field's type."""
    check_model(body.model, model)
    check_choices(body, max_choices=limits.max_choices, max_num_seqs=model.engine.info.max_num_seqs)
    shows_special_tokens = body.skip_special_tokens is False
    if body.spaces_between_special_tokens is False and shows_special_tokens and model.tokenizer.spaces_special_tokens:
        field = "spaces_between_special_tokens"
        raise InvalidRequest(f"{field} must be true, given false: this model's tokenizer writes spaces", param=field)


def check_completion(body: CompletionFields, model: ServedModel, limits: LimitsConfig) -> None:
    check_limits(body, model, limits)
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("stream_options needs stream to be true", param="stream_options")
    if body.stream_options is not None and body.stream_options.include_obfuscation:
        field = "stream_options.include_obfuscation"
        raise InvalidRequest(f"{field} is not supported by this server, given true", param=field)
    check_num_logprobs(body.prompt_logprobs, limits, param="prompt_logprobs")


def check_num_logprobs(num_logprobs: int | None, limits: LimitsConfig, *, param: str) -> None:
    if num_logprobs is not None and num_logprobs > limits.max_logprobs:
        raise InvalidRequest(f"{param} must be <= {limits.max_logprobs}, given {num_logprobs}", param=param)


def max_tokens_of(body: GenerationFields) -> tuple[str, int | None]:
    """The field that counts, and its value."""
    if body.max_completion_tokens is not None:
        return "max_completion_tokens", body.max_completion_tokens
    return "max_tokens", body.max_tokens


def truncation_of(body: GenerationFields, max_model_len: int, max_tokens: int | None) -> Truncation | None:
    """`max_tokens`: the request's, or the endpoint's default."""
    limit = body.truncate_prompt_tokens
    if limit is None:
        if body.truncation_side is not None:
            raise InvalidRequest("truncation_side needs truncate_prompt_tokens", param="truncation_side")
        return None
    if limit == 0 or limit > max_model_len:
        field = "truncate_prompt_tokens"
        raise InvalidRequest(f"{field} must be -1 or from 1 to {max_model_len}, given {limit}", param=field)
    if limit == -1:
        limit = max(max_model_len - (max_tokens or 1), 1)
    return Truncation(limit, keeps_end=body.truncation_side != "right")


def generation_request(
    body: GenerationFields,
    model: ServedModel,
    prompt: Prompt,
    *,
    request_id: str,
    max_tokens: tuple[str, int | None],  # the field that was given, and its value
    form: OutputForm | None,
    default_max_tokens: int | None,  # None: what the prompt leaves
    num_logprobs: int | None,
    num_prompt_logprobs: int | None = None,
    shows_prompt: bool = False,  # there is something to answer without a token: max_tokens may be 0
    continues_prompt: bool,
    parses_output: bool,
    tool_use: ToolUse | None = None,
    arrival_s: float,
) -> GenerationRequest:
    choosing = choosing_of(body)
    param, asked_tokens = max_tokens
    if asked_tokens == 0 and not shows_prompt:
        raise InvalidRequest(f"{param} must be >= 1, given 0", param=param)
    grammar = model.grammar_for(
        tool_use,
        form,
        prompt_text=prompt.text if parses_output else None,
        continues_prompt=continues_prompt,
        guards_calls=not continues_prompt,
    )
    return GenerationRequest(
        request_id=request_id,
        prompt=prompt,
        params=resolve_sampling(
            body,
            model.sampling_defaults,
            max_tokens=_num_tokens(body, model, prompt, choosing, max_tokens=max_tokens, default=default_max_tokens),
            beam_search=choosing.beam_search,
            num_logprobs=num_logprobs,
            num_prompt_logprobs=num_prompt_logprobs,
            vocab_size=model.engine.info.vocab_size,
            tokenizer=model.tokenizer,
        ),
        n=choosing.n,
        best_of=choosing.best_of,
        stop_strings=_stop_strings(body.stop, model.sampling_defaults.stop_strings),
        include_stop_str_in_output=body.include_stop_str_in_output or False,
        skip_special_tokens=body.skip_special_tokens is not False,
        continues_prompt=continues_prompt,
        parses_output=parses_output,
        tools=() if tool_use is None else tool_use.tools,
        grammar=grammar,
        priority=body.priority or 0,
        cache_salt=body.cache_salt or "",
        arrival_s=arrival_s,
    )


def _stop_strings(asked: str | list[str] | None, default: str | list[str] | None) -> tuple[str, ...]:
    """The request's, which replace those of the model's makers."""
    stop = default if asked is None else asked
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _num_tokens(
    body: GenerationFields,
    model: ServedModel,
    prompt: Prompt,
    choosing: Choosing,
    *,
    max_tokens: tuple[str, int | None],
    default: int | None,
) -> int:
    """How many tokens each choice may have: within the server's limit, the context and, of beams, the KV cache."""
    info, limit = model.engine.info, model.max_tokens_limit
    param, asked = max_tokens
    if limit is not None and (asked or 0) > limit:
        what = f"{param} must be <= {limit}, this server's max_tokens_limit, given {asked}"
        raise InvalidRequest(what, param=param)
    default = default or model.sampling_defaults.max_new_tokens
    if limit is not None:
        default = min(default or limit, limit)
    num_prompt_tokens = len(prompt.token_ids)
    num_tokens = fit_max_tokens(
        asked, default=default, num_prompt_tokens=num_prompt_tokens, max_model_len=info.max_model_len, param=param
    )
    if choosing.beam_search is None:
        return num_tokens
    return fit_beams(
        num_tokens,
        choosing.beam_search.width,
        is_asked=asked is not None,
        num_prompt_tokens=num_prompt_tokens,
        info=info,
        param=param,
        width_param=width_field(body),
    )
