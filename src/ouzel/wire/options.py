"""Turns the shared fields of a body into generation options.

Fields that contradict each other or exceed this server's limits are refused.
"""

from msgspec.structs import replace

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import GenerationOptions, ServedModel, Truncation
from ouzel.wire.choice_fields import read_choosing
from ouzel.wire.fields import CompletionFields, GenerationFields
from ouzel.wire.model_name import names_no_model
from ouzel.wire.response_form import output_form
from ouzel.wire.speculation import read_speculation

# a limit of tokens that means: all tokens that the prompt leaves
_ALL_LEFT = -1


def read_options(
    body: GenerationFields, model: ServedModel, limits: LimitsConfig
) -> GenerationOptions:
    """Reads the fields that mean the same at every generating endpoint.

    The options are for a text that the model continues; an endpoint replaces the options that
    differ.
    """
    check_model(body.model, model)
    check_generates(model)
    choosing = read_choosing(body, max_choices=limits.max_choices)
    form, unreadable_form = output_form(body, is_lenient=model.has_lenient_formats)
    _check_spaces(body, model)
    options = GenerationOptions(
        sampling=body,
        choosing=choosing,
        max_tokens=None,
        max_tokens_param="max_tokens",
        is_strict=limits.strict_max_tokens,
        stop_strings=None if body.stop is None else tuple(list_texts(body.stop)),
        include_stop_str_in_output=body.include_stop_str_in_output or False,
        skip_special_tokens=body.skip_special_tokens is not False,
        form=form,
        unreadable_form=unreadable_form,
        thinking_token_budget=body.thinking_token_budget,
        speculation=read_speculation(body, model),
        continues_prompt=True,
        parses_output=False,
        priority=body.priority or 0,
        cache_salt=body.cache_salt or "",
    )
    if body.max_completion_tokens is not None:  # max_completion_tokens overrides max_tokens
        return limit_tokens(options, body.max_completion_tokens, param="max_completion_tokens")
    return limit_tokens(options, body.max_tokens, param="max_tokens")


def limit_tokens(
    options: GenerationOptions, max_tokens: int | None, *, param: str
) -> GenerationOptions:
    """Returns the options with the limit of tokens from the request's field `param`.

    None sets no limit; -1 allows all tokens that the prompt leaves.
    """
    if max_tokens == _ALL_LEFT:
        return replace(options, max_tokens=None, max_tokens_param=param, takes_all_left=True)
    return replace(options, max_tokens=max_tokens, max_tokens_param=param)


def check_model(name: str | None, model: ServedModel) -> None:
    """Raises ModelNotFound for another model's name.

    An absent or empty name means the served model.
    """
    if name is not None and not names_no_model(name) and name not in model.names:
        names = ", ".join(model.names)
        raise ModelNotFound(
            f"the model {name[:100]!r} does not exist; this server has: {names}", param="model"
        )


def check_generates(model: ServedModel) -> None:
    """Raises InvalidRequest, with the right endpoint, if the model has another task."""
    if model.sentences is None and model.speech is None and not model.speaks:
        return
    advice = "scores texts and makes none: send them to /v1/rerank or /v1/score"
    if model.speech is not None:
        advice = "turns speech into text: send sound to /v1/audio/transcriptions"
    elif model.speaks:
        advice = "reads texts aloud and writes none: send them to /v1/audio/speech"
    elif model.engine.info.task == "embed":
        advice = "makes embeddings and no text: send them to /v1/embeddings"
    raise InvalidRequest(f"the model {model.names[0]!r} {advice}", param="model")


def check_completion(body: CompletionFields) -> None:
    """Raises InvalidRequest if fields of answers with choices contradict each other."""
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("needs stream to be true", field="stream_options")
    if body.stream_options is not None and body.stream_options.include_obfuscation:
        field = "stream_options.include_obfuscation"
        raise InvalidRequest("is not supported by this server, given true", field=field)


def check_num_logprobs(num_logprobs: int | None, limits: LimitsConfig, *, param: str) -> None:
    if num_logprobs is not None and 0 <= limits.max_logprobs < num_logprobs:
        raise InvalidRequest(f"must be <= {limits.max_logprobs}, given {num_logprobs}", field=param)


def read_num_alternatives(
    num_logprobs: int | None, model: ServedModel, limits: LimitsConfig, *, param: str
) -> int | None:
    """Returns the number of alternatives per token; -1 stands for the whole vocabulary.

    Raises InvalidRequest for more alternatives than the server allows.
    """
    if num_logprobs != -1:
        check_num_logprobs(num_logprobs, limits, param=param)
        return num_logprobs
    vocab_size = model.engine.info.vocab_size
    if 0 <= limits.max_logprobs < vocab_size:
        what = f"-1, the whole vocabulary of {vocab_size} (see --max-logprobs)"
        raise InvalidRequest(f"must be from 0 to {limits.max_logprobs}, given {what}", field=param)
    return vocab_size


def read_truncation(body: GenerationFields, max_tokens: int | None) -> Truncation | None:
    """Returns how to cut the prompt, or None to leave it whole.

    `max_tokens`, the limit of the request or of the endpoint, must fit beside the rest of the
    prompt.
    """
    if body.truncate_prompt_tokens is not None:
        keeps_end = body.truncation_side != "right"
        return Truncation(
            body.truncate_prompt_tokens, keeps_end=keeps_end, num_kept_free=max_tokens or 1
        )
    if body.truncation_side is not None:
        raise InvalidRequest("needs truncate_prompt_tokens", field="truncation_side")
    return None


def list_texts(texts: str | list[str] | None) -> list[str]:
    """Reads a field that holds one text, several texts or none."""
    return [texts] if isinstance(texts, str) else texts or []


def _check_spaces(body: GenerationFields, model: ServedModel) -> None:
    shows_special_tokens = body.skip_special_tokens is False
    if (
        body.spaces_between_special_tokens is False
        and shows_special_tokens
        and model.tokenizer.spaces_special_tokens
    ):
        field = "spaces_between_special_tokens"
        raise InvalidRequest(
            "must be true, given false: this model's tokenizer writes spaces", field=field
        )
