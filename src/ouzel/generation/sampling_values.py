"""Turns sampling fields into sampling parameters, and checks their ranges for the model."""

import re
import secrets
from typing import TypeVar

import msgspec

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.errors import ContextLengthExceeded, InvalidRequest
from ouzel.sampling import BeamSearchParams, SamplingFields, SamplingParams
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_info import EngineInfo

Number = TypeVar("Number", int, float, bool)

DEFAULT_TEMPERATURE = 1.0
_ALL_TOKENS = -1  # number of tokens that penalties look at: all
# default for sampling, if neither the request nor generation_config.json has a value
DEFAULT_TOP_K = 40


def fit_max_tokens(
    wanted: int | None, *, is_strict: bool, num_prompt_tokens: int, max_model_len: int, param: str
) -> int:
    """Returns the wanted number of tokens, or the rest of `max_model_len` if that is less.

    With `is_strict`, raises ContextLengthExceeded instead, in OpenAI's words: clients look for
    them.
    """
    left = max_model_len - num_prompt_tokens  # 1 or more: the renderer has checked the prompt
    if is_strict and wanted is not None and wanted > left:
        raise ContextLengthExceeded(
            f"must be <= {left}, given {wanted}. This model's maximum context length is "
            f"{max_model_len} tokens. However, you requested {num_prompt_tokens + wanted} tokens "
            f"({num_prompt_tokens} in the prompt, {wanted} in the completion). "
            "Please reduce the length of the messages or completion (context_length_exceeded).",
            field=param,
        )
    return left if wanted is None else min(wanted, left)


def fit_beams(
    max_tokens: int,
    width: int,
    *,
    is_strict: bool,
    num_prompt_tokens: int,
    info: EngineInfo,
    param: str,
    width_param: str,
) -> int:
    """Returns the token limit of each beam: all beams must fit into the KV cache.

    Beams share the full blocks of their prompt.
    """
    num_shared_blocks = num_prompt_tokens // info.block_size
    # blocks of one beam
    num_blocks = num_shared_blocks + max(info.num_blocks - num_shared_blocks, 0) // width
    left = num_blocks * info.block_size - num_prompt_tokens
    if left < 1:
        cache = f"the KV cache has {info.num_blocks} blocks of {info.block_size} tokens"
        raise InvalidRequest(
            f"must be smaller for a prompt of {num_prompt_tokens} tokens, given {width} beams: "
            f"{cache}",
            field=width_param,
        )
    if is_strict and max_tokens > left:
        raise InvalidRequest(
            f"must be <= {left} with {width} beams in this KV cache, given {max_tokens}",
            field=param,
        )
    return min(max_tokens, left)


def resolve_sampling(
    fields: SamplingFields,
    defaults: SamplingDefaults,
    *,
    max_tokens: int,
    num_logprobs: int | None,
    num_prompt_logprobs: int | None = None,
    logprob_token_ids: list[int] | None = None,
    beam_search: BeamSearchParams | None = None,
    vocab_size: int,
    tokenizer: Tokenizer,
) -> SamplingParams:
    """Takes each value from the request, from generation_config.json, or from Ouzel's defaults."""
    if (fields.min_tokens or 0) > max_tokens:
        raise InvalidRequest(
            f"must be <= {max_tokens}, given {fields.min_tokens}", field="min_tokens"
        )
    temperature = _temperature(fields, defaults)
    top_k = _first(fields.top_k, defaults.top_k, DEFAULT_TOP_K if temperature > 0 else 0)
    return _without_idle_window(
        SamplingParams(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=_first(fields.top_p, defaults.top_p, 1.0),
            top_k=max(top_k, 0),
            min_p=_first(fields.min_p, defaults.min_p, 0.0),
            typical_p=_first(fields.typical_p, defaults.typical_p, 1.0),
            repetition_penalty=_first(fields.repetition_penalty, defaults.repetition_penalty, 1.0),
            presence_penalty=_first(fields.presence_penalty, defaults.presence_penalty, 0.0),
            frequency_penalty=_first(fields.frequency_penalty, defaults.frequency_penalty, 0.0),
            repeat_last_n=_first(fields.repeat_last_n, _ALL_TOKENS),
            seed=secrets.randbits(63) if fields.seed is None else fields.seed,
            is_seed_random=fields.seed is None,
            min_tokens=fields.min_tokens or 0,
            stop_token_ids=_token_ids("stop_token_ids", fields.stop_token_ids or [], vocab_size),
            ignore_eos=fields.ignore_eos or False,
            logit_bias=_logit_bias(fields.logit_bias or {}, vocab_size),
            allowed_token_ids=_token_ids(
                "allowed_token_ids", fields.allowed_token_ids or [], vocab_size
            ),
            bad_words=_bad_words(fields.bad_words or [], tokenizer, vocab_size),
            no_repeat_ngram_size=_first(
                fields.no_repeat_ngram_size, defaults.no_repeat_ngram_size, 0
            ),
            num_logprobs=num_logprobs,
            num_prompt_logprobs=num_prompt_logprobs,
            logprob_token_ids=_token_ids("logprob_token_ids", logprob_token_ids or [], vocab_size),
            beam_search=beam_search,
        )
    )


def _without_idle_window(params: SamplingParams) -> SamplingParams:
    """Resets penalties that look at no token, and a window that no penalty looks at."""
    if params.repeat_last_n == 0:
        params = msgspec.structs.replace(
            params, repetition_penalty=1.0, presence_penalty=0.0, frequency_penalty=0.0
        )
    if params.penalises_tokens:
        return params
    return msgspec.structs.replace(params, repeat_last_n=_ALL_TOKENS)


def _temperature(fields: SamplingFields, defaults: SamplingDefaults) -> float:
    """Returns the temperature; 0 if `do_sample` is false.

    `do_sample` of generation_config.json counts only if the request has no temperature.
    """
    asked = fields.temperature
    if asked is not None:
        if fields.do_sample is (asked == 0):
            limit = (
                "> 0 when do_sample is true" if fields.do_sample else "0 when do_sample is false"
            )
            raise InvalidRequest(f"must be {limit}, given {asked:g}", field="temperature")
        return asked
    if not _first(fields.do_sample, defaults.do_sample, True):
        return 0.0
    makers = defaults.temperature
    return DEFAULT_TEMPERATURE if makers is None or (makers == 0 and fields.do_sample) else makers


def _first(*values: Number | None) -> Number:
    return next(value for value in values if value is not None)


def _token_ids(field: str, token_ids: list[int], vocab_size: int) -> tuple[int, ...]:
    for position, token_id in enumerate(token_ids):
        if token_id >= vocab_size:
            path = f"{field}[{position}]"
            raise InvalidRequest(f"must be <= {vocab_size - 1}, given {token_id}", field=path)
    return tuple(token_ids)


def _bad_words(
    words: list[str], tokenizer: Tokenizer, vocab_size: int
) -> tuple[tuple[int, ...], ...]:
    """Returns the tokens of each word at the start of a text and after a space, which often
    differ.
    """
    bad_words: dict[tuple[int, ...], None] = {}
    for position, word in enumerate(words):
        bare = word.lstrip(" ") or word
        variants = [
            tuple(tokenizer.encode(text, add_special_tokens=False)) for text in (bare, f" {bare}")
        ]
        if not all(variants):
            path = f"bad_words[{position}]"
            raise InvalidRequest(f"must be a text with tokens, given {word!r}", field=path)
        bad_words |= dict.fromkeys(variants)
    # Tokens beyond the vocabulary cannot be generated.
    return tuple(token_ids for token_ids in bad_words if max(token_ids) < vocab_size)


def _logit_bias(biases: dict[str, float], vocab_size: int) -> tuple[tuple[int, float], ...]:
    for token_id in biases:
        if not re.fullmatch(r"0|[1-9][0-9]{0,9}", token_id) or int(token_id) >= vocab_size:
            raise InvalidRequest(
                f"keys must be token ids from 0 to {vocab_size - 1}, given {token_id[:40]!r}",
                field="logit_bias",
            )
    return tuple((int(token_id), bias) for token_id, bias in biases.items())
