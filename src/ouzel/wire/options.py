"""The shared fields of a body become options of a generation; what contradicts itself or this server is refused."""

from msgspec.structs import replace

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, ModelNotFound
from ouzel.generation import GenerationOptions, ServedModel, Truncation
from ouzel.wire.choice_fields import choosing_of
from ouzel.wire.fields import CompletionFields, GenerationFields
from ouzel.wire.model_name import names_no_model
from ouzel.wire.response_form import output_form
from ouzel.wire.speculation import speculation_of

_ALL_LEFT = -1  # as a limit of tokens: what the prompt leaves


def options_of(
    body: GenerationFields, model: ServedModel, limits: LimitsConfig
) -> GenerationOptions:
    """Reads what means the same in every endpoint, for a text that goes on; an endpoint replaces what differs there."""
    check_model(body.model, model)
    check_generates(model)
    choosing = choosing_of(body, max_choices=limits.max_choices)
    form, unreadable_form = output_form(body, is_lenient=model.has_lenient_formats)
    _check_spaces(body, model)
    options = GenerationOptions(
        sampling=body,
        choosing=choosing,
        max_tokens=None,
        max_tokens_param="max_tokens",
        is_strict=limits.strict_max_tokens,
        stop_strings=None if body.stop is None else tuple(listed(body.stop)),
        include_stop_str_in_output=body.include_stop_str_in_output or False,
        skip_special_tokens=body.skip_special_tokens is not False,
        form=form,
        unreadable_form=unreadable_form,
        thinking_token_budget=body.thinking_token_budget,
        speculation=speculation_of(body, model),
        continues_prompt=True,
        parses_output=False,
        priority=body.priority or 0,
        cache_salt=body.cache_salt or "",
    )
    if body.max_completion_tokens is not None:  # the stronger of the two
        return limited(options, body.max_completion_tokens, param="max_completion_tokens")
    return limited(options, body.max_tokens, param="max_tokens")


def limited(options: GenerationOptions, max_tokens: int | None, *, param: str) -> GenerationOptions:
    """Returns the options with a limit of tokens as the request's field `param` gives it: None says nothing."""
    if max_tokens == _ALL_LEFT:
        return replace(options, max_tokens=None, max_tokens_param=param, takes_all_left=True)
    return replace(options, max_tokens=max_tokens, max_tokens_param=param)


def check_model(name: str | None, model: ServedModel) -> None:
    """Raises ModelNotFound for a name of another model; no name, or an empty one, is the served model."""
    if name is not None and not names_no_model(name) and name not in model.names:
        names = ", ".join(model.names)
        raise ModelNotFound(
            f"the model {name[:100]!r} does not exist; this server has: {names}", param="model"
        )


def check_generates(model: ServedModel) -> None:
    """Raises InvalidRequest where the model makes vectors or scores; it names the endpoints that have them."""
    if model.sentences is None:
        return
    where, does = "/v1/rerank or /v1/score", "scores texts and makes none"
    if model.engine.info.task == "embed":
        where, does = "/v1/embeddings", "makes embeddings and no text"
    raise InvalidRequest(
        f"the model {model.names[0]!r} {does}: send them to {where}", param="model"
    )


def check_completion(body: CompletionFields) -> None:
    """Raises InvalidRequest for fields of answers with choices that contradict each other."""
    if body.stream_options is not None and not body.stream:
        raise InvalidRequest("needs stream to be true", field="stream_options")
    if body.stream_options is not None and body.stream_options.include_obfuscation:
        field = "stream_options.include_obfuscation"
        raise InvalidRequest("is not supported by this server, given true", field=field)


def check_num_logprobs(num_logprobs: int | None, limits: LimitsConfig, *, param: str) -> None:
    if num_logprobs is not None and 0 <= limits.max_logprobs < num_logprobs:
        raise InvalidRequest(f"must be <= {limits.max_logprobs}, given {num_logprobs}", field=param)


def num_alternatives(
    num_logprobs: int | None, model: ServedModel, limits: LimitsConfig, *, param: str
) -> int | None:
    """Returns how many a token has: -1 asks for the whole vocabulary. Raises InvalidRequest."""
    if num_logprobs != -1:
        check_num_logprobs(num_logprobs, limits, param=param)
        return num_logprobs
    vocab_size = model.engine.info.vocab_size
    if 0 <= limits.max_logprobs < vocab_size:
        what = f"-1, the whole vocabulary of {vocab_size} (see --max-logprobs)"
        raise InvalidRequest(f"must be from 0 to {limits.max_logprobs}, given {what}", field=param)
    return vocab_size


def truncation_of(body: GenerationFields, max_tokens: int | None) -> Truncation | None:
    """Returns how the prompt is cut. `max_tokens`, the request's or the endpoint's, must fit beside what stays."""
    if body.truncate_prompt_tokens is not None:
        keeps_end = body.truncation_side != "right"
        return Truncation(
            body.truncate_prompt_tokens, keeps_end=keeps_end, num_kept_free=max_tokens or 1
        )
    if body.truncation_side is not None:
        raise InvalidRequest("needs truncate_prompt_tokens", field="truncation_side")
    return None


def listed(texts: str | list[str] | None) -> list[str]:
    """Reads a field that holds a text, several or none."""
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
