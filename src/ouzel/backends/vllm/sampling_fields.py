"""Translates a request to the fields of vLLM's `SamplingParams`, and finds its unsupported fields.

Rules
1. A field that vLLM cannot honour, or was not started for, is refused by its name. No field is
   dropped: a field of SamplingParams that `_HONOURED` lacks must have its default value.
2. Each choice is a request to vLLM, so it can be aborted and ends by itself. Choices share the
   prompt's blocks anyway.
3. Ouzel decides which tokens end an output: vLLM's own end token is ignored, and ours are stop
   tokens.
"""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

import msgspec

from ouzel.types.engine_request import EngineRequest, Grammar
from ouzel.types.step_output import FinishReason, StepOutput

VERSION = "0.33."  # the supported versions of vLLM
MAX_LOGPROB_TOKEN_IDS = 128  # vLLM's limit
_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "abort": FinishReason.ABORT,
    "error": FinishReason.ERROR,
    "repetition": FinishReason.STOP,
}
_HERE = "with this engine (vLLM)"
# The fields of SamplingParams that `sampling_fields` passes to vLLM, and the fields that need more
# than a comparison with the default.
_HONOURED = frozenset(
    {
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "is_seed_random",
        "min_tokens",
        "stop_token_ids",
        "ignore_eos",
        "logit_bias",
        "allowed_token_ids",
        "bad_words",
        "num_logprobs",
        "logprob_token_ids",
        "num_prompt_logprobs",
        "beam_search",
    }
)


_LAST_PRIORITY = 2**31 - 1


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """The optional abilities of a vLLM server, which depend on its options."""

    priorities: bool = True
    grammars: bool = True
    reasoning_budgets: bool = False
    token_bans: bool = True  # bad_words, as token ids


class Refusal(msgspec.Struct, frozen=True):
    param: str  # the request's field
    message: str


def find_refusal(request: EngineRequest, abilities: Abilities) -> Refusal | None:
    """Returns the first field of the request that vLLM cannot honour; None if there is none."""
    return next(chain(_find_unsupported(request), _find_unavailable(request, abilities)), None)


def drop_optional_budget(request: EngineRequest, abilities: Abilities) -> EngineRequest:
    """Drops a reasoning budget that vLLM cannot honour and that the client did not request."""
    budget = request.reasoning_budget
    if budget is None or budget.is_required or abilities.reasoning_budgets:
        return request
    return msgspec.structs.replace(request, reasoning_budget=None)


def _find_unsupported(request: EngineRequest) -> Iterator[Refusal]:
    params, grammar = request.params, request.grammar
    if params.beam_search is not None:
        yield _refused("use_beam_search", "must be false", "true")
    for name, default in _list_unsupported(type(params)).items():
        if (value := getattr(params, name)) != default:
            yield _refused(name, f"must be {_format(default)}", _format(value))
    if request.adapter:
        yield _refused("model", "must name no adapter", request.adapter)
    num_ids = len(params.logprob_token_ids)
    if num_ids > MAX_LOGPROB_TOKEN_IDS:
        yield _refused(
            "logprob_token_ids", f"must be at most {MAX_LOGPROB_TOKEN_IDS} ids", f"{num_ids}"
        )
    if num_ids and params.num_logprobs:
        yield _refused(
            "logprob_token_ids", "must not be given beside most likely tokens", f"{num_ids} ids"
        )
    if grammar is not None and grammar_text(grammar) is None:
        yield Refusal(
            grammar.param,
            f"{grammar.param}: a client's own grammar cannot be a part of a form {_HERE}",
        )


def _find_unavailable(request: EngineRequest, abilities: Abilities) -> Iterator[Refusal]:
    grammar, budget = request.grammar, request.reasoning_budget
    if request.params.bad_words and not abilities.token_bans:
        yield _refused(
            "bad_words", "must not be given", f"{len(request.params.bad_words)} runs of tokens"
        )
    if request.priority and not request.is_background and not abilities.priorities:
        yield _refused(
            "priority", "must be 0", f"{request.priority}: vLLM was started without priorities"
        )
    if budget is not None and budget.is_required and not abilities.reasoning_budgets:
        why = f"{budget.max_tokens}: vLLM does not know the reasoning marks of this model"
        yield _refused("thinking_token_budget", "must not be given", why)
    if grammar is not None and not abilities.grammars:
        yield Refusal(
            grammar.param,
            f"{grammar.param}: the output cannot follow a form {_HERE}: vLLM has no guidance",
        )


@cache
def _list_unsupported(kind: type[msgspec.Struct]) -> Mapping[str, object]:
    """Returns the default values of the parameters that vLLM does not have."""
    fields = msgspec.structs.fields(kind)
    return {field.name: field.default for field in fields if field.name not in _HONOURED}


def _format(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _refused(param: str, limit: str, value: str) -> Refusal:
    return Refusal(param, f"{param} {limit} {_HERE}, given {value}")


class _Grammar(msgspec.Struct):
    lark_grammar: str


class _Grammars(msgspec.Struct):
    grammars: list[_Grammar]


def grammar_text(grammar: Grammar) -> str | None:
    """Returns the grammar as one Lark text, the form that vLLM takes; None if it has several.

    A client's own grammar is a second grammar beside ours, which refers to it; if ours does nothing
    else, the client's grammar is the whole.
    """
    if not grammar.text.startswith("{"):
        return grammar.text
    top, *others = msgspec.json.decode(grammar.text, type=_Grammars).grammars
    return (
        others[0].lark_grammar if len(others) == 1 and top.lark_grammar == "start: @g1\n" else None
    )


def make_cache_salt(request: EngineRequest) -> str | None:
    """Returns a salt of characters that vLLM accepts; None: all share the prompt's blocks."""
    return hashlib.sha256(request.cache_salt.encode()).hexdigest() if request.cache_salt else None


def sampling_fields(request: EngineRequest, index: int) -> dict[str, object]:
    """Returns the fields of vLLM's SamplingParams for one choice, without grammar and bad words.

    Fields with vLLM's default are omitted: vLLM's log then shows only deliberate values.
    """
    params = request.params
    fields: dict[str, object] = {
        # 0 is not allowed: one token is generated and dropped
        "max_tokens": max(params.max_tokens, 1),
        "temperature": params.temperature,
        "ignore_eos": True,
        "stop_token_ids": [
            *params.stop_token_ids,
            *(() if params.ignore_eos else request.eos_token_ids),
        ],
        "detokenize": False,
    }
    optional: dict[str, tuple[object, object]] = {
        "top_p": (params.top_p, 1.0),
        "top_k": (params.top_k, 0),
        "min_p": (params.min_p, 0.0),
        "repetition_penalty": (params.repetition_penalty, 1.0),
        "presence_penalty": (params.presence_penalty, 0.0),
        "frequency_penalty": (params.frequency_penalty, 0.0),
        "min_tokens": (min(params.min_tokens, max(params.max_tokens, 1)), 0),
        "allowed_token_ids": (list(params.allowed_token_ids), []),
        "logit_bias": (dict(params.logit_bias), {}),
    }
    fields |= {name: value for name, (value, default) in optional.items() if value != default}
    # With a seed vLLM samples each row by itself, which takes time.
    if not params.is_seed_random:
        fields["seed"] = (params.seed + index) % 2**63
    if params.num_logprobs is not None:
        fields["logprobs"] = params.num_logprobs
        if params.logprob_token_ids:
            fields |= {
                "logprobs": len(params.logprob_token_ids),
                "logprob_token_ids": list(params.logprob_token_ids),
            }
    if params.num_prompt_logprobs is not None and index == 0:
        fields["prompt_logprobs"] = params.num_prompt_logprobs
    if request.reasoning_budget is not None:
        fields["thinking_token_budget"] = request.reasoning_budget.max_tokens
    return fields


def read_finish_reason(name: str | None) -> FinishReason | None:
    """Converts vLLM's finish reason; None: the choice continues."""
    return None if name is None else _FINISH_REASONS.get(name, FinishReason.ERROR)


def make_confirmation(request_id: str, index: int) -> StepOutput:
    """Makes the output that confirms a choice."""
    return StepOutput(
        request_id=request_id, index=index, token_ids=[], logprobs=[], num_cached_tokens=0
    )


def make_final_output(
    request_id: str,
    index: int,
    reason: FinishReason,
    *,
    error: str | None = None,
    param: str | None = None,
) -> StepOutput:
    """Makes the final output of a choice that is refused, aborted or failed."""
    return StepOutput(
        request_id=request_id,
        index=index,
        token_ids=[],
        logprobs=[],
        num_cached_tokens=0,
        finish_reason=reason,
        error=error,
        error_param=param,
    )


def read_priority(request: EngineRequest) -> int:
    """Returns vLLM's priority; vLLM knows no background, only the last place in the queue."""
    return min(request.priority, _LAST_PRIORITY)
