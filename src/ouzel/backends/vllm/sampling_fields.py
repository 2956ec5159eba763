"""A request of ours in vLLM's words: the fields of its `SamplingParams`, and what it cannot do.

Rules
1. What vLLM cannot do, or was not started for, is refused by the name of the request's field. Nothing is left out.
2. Each choice is a request there, so that it can be aborted and ends by itself. They share the prompt's blocks anyway.
3. Which tokens end is ours to say: vLLM's own end token is ignored, and ours are stop tokens.
"""

import hashlib
from collections.abc import Iterator
from itertools import chain

import msgspec

from ouzel.types.engine_request import EngineRequest, Grammar
from ouzel.types.step_output import FinishReason, StepOutput

VERSION = "0.33."  # of which this is written
MAX_LOGPROB_TOKEN_IDS = 128  # vLLM's
_FINISH_REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "abort": FinishReason.ABORT,
    "error": FinishReason.ERROR,
    "repetition": FinishReason.STOP,
}
_HERE = "with this engine, which is vLLM"


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """They depend on how vLLM was started. Those that are not named here it always has."""

    priorities: bool = True
    grammars: bool = True
    reasoning_budgets: bool = False
    token_bans: bool = True  # bad_words, as token ids


class Refusal(msgspec.Struct, frozen=True):
    param: str  # the request's field
    message: str


def refusal_of(request: EngineRequest, abilities: Abilities) -> Refusal | None:
    """Returns the first thing of the request that vLLM cannot do; None: it can do everything."""
    return next(chain(_of_no_vllm(request), _of_this_vllm(request, abilities)), None)


def without_optional_budget(request: EngineRequest, abilities: Abilities) -> EngineRequest:
    """Drops a budget of reasoning that vLLM cannot keep and that the client has not asked for."""
    budget = request.reasoning_budget
    if budget is None or budget.is_required or abilities.reasoning_budgets:
        return request
    return msgspec.structs.replace(request, reasoning_budget=None)


def _of_no_vllm(request: EngineRequest) -> Iterator[Refusal]:
    params, grammar = request.params, request.grammar
    if params.beam_search is not None:
        yield _refused("use_beam_search", "must be false", "true")
    if params.typical_p != 1.0:
        yield _refused("typical_p", "must be 1", f"{params.typical_p:g}")
    if params.repeat_last_n != -1:
        yield _refused("repeat_last_n", "must be -1", f"{params.repeat_last_n}")
    if params.no_repeat_ngram_size:
        yield _refused("no_repeat_ngram_size", "must be 0", f"{params.no_repeat_ngram_size}")
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
            f"{grammar.param}: a grammar of the client's own cannot be a part of a form {_HERE}",
        )


def _of_this_vllm(request: EngineRequest, abilities: Abilities) -> Iterator[Refusal]:
    grammar, budget = request.grammar, request.reasoning_budget
    if request.params.bad_words and not abilities.token_bans:
        yield _refused(
            "bad_words", "must not be given", f"{len(request.params.bad_words)} runs of tokens"
        )
    if request.priority and not abilities.priorities:
        yield _refused(
            "priority", "must be 0", f"{request.priority}: it was not started with priorities"
        )
    if budget is not None and budget.is_required and not abilities.reasoning_budgets:
        why = f"{budget.max_tokens}: it does not know this model's marks of reasoning"
        yield _refused("thinking_token_budget", "must not be given", why)
    if grammar is not None and not abilities.grammars:
        yield Refusal(
            grammar.param,
            f"{grammar.param}: nothing holds the output to a form {_HERE}: it has no guidance",
        )


def _refused(param: str, limit: str, value: str) -> Refusal:
    return Refusal(param, f"{param} {limit} {_HERE}, given {value}")


class _Grammar(msgspec.Struct):
    lark_grammar: str


class _Grammars(msgspec.Struct):
    grammars: list[_Grammar]


def grammar_text(grammar: Grammar) -> str | None:
    """Returns it as one Lark grammar, the form that vLLM takes; None where it is of several.

    A client's own grammar is one by itself beside ours, which names it; where ours says nothing else, it is the whole.
    """
    if not grammar.text.startswith("{"):
        return grammar.text
    top, *others = msgspec.json.decode(grammar.text, type=_Grammars).grammars
    return (
        others[0].lark_grammar if len(others) == 1 and top.lark_grammar == "start: @g1\n" else None
    )


def cache_salt_of(request: EngineRequest) -> str | None:
    """Returns a salt of those characters that vLLM takes; None: everybody shares the prompt's blocks."""
    return hashlib.sha256(request.cache_salt.encode()).hexdigest() if request.cache_salt else None


def sampling_fields(request: EngineRequest, index: int) -> dict[str, object]:
    """Returns the fields of vLLM's SamplingParams for one choice, without the grammar and the banned runs of tokens.

    What has vLLM's default is left out: the rest is what somebody meant, and what its log shows.
    """
    params = request.params
    fields: dict[str, object] = {
        "max_tokens": max(params.max_tokens, 1),  # it takes no 0: one token is made, and dropped
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
    if (
        not params.is_seed_random
    ):  # with a seed of its own a row is drawn by itself, which takes time
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


def finish_reason_of(name: str | None) -> FinishReason | None:
    """Reads vLLM's name of it; None: the choice goes on."""
    return None if name is None else _FINISH_REASONS.get(name, FinishReason.ERROR)


def taken(request_id: str, index: int) -> StepOutput:
    """Returns the output which confirms that vLLM has taken a choice."""
    return StepOutput(
        request_id=request_id, index=index, token_ids=[], logprobs=[], num_cached_tokens=0
    )


def ended(
    request_id: str,
    index: int,
    reason: FinishReason,
    *,
    error: str | None = None,
    param: str | None = None,
) -> StepOutput:
    """Returns the final output of a choice that ends otherwise than by its tokens."""
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
