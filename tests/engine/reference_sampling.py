"""Reference functions on logits; the tests compare the engine's vectorised sampler with them.

Each function works on one row, computes in float64 and does not care about speed. The functions are
applied in the order of this file.
"""

import math

import numpy as np
from numpy.typing import NDArray

from ouzel.engine.sampling.philox import random_bits
from ouzel.sampling import SamplingParams

Logits = NDArray[np.float32]  # [vocab_size]


def apply_logit_bias(logits: Logits, params: SamplingParams) -> Logits:
    biased = logits.copy()
    for token_id, bias in params.logit_bias:
        biased[token_id] += bias
    return biased


def apply_penalties(
    logits: Logits, params: SamplingParams, prompt_token_ids: list[int], output_token_ids: list[int]
) -> Logits:
    """Applies the repetition penalty to tokens of prompt and output, then OpenAI's two penalties.

    The repetition penalty follows Keskar et al. 2019. OpenAI's penalties count only the output.
    If `repeat_last_n` is set, only the last so many tokens count.
    """
    penalised = logits.copy()
    if params.repeat_last_n >= 0:
        num_output = min(len(output_token_ids), params.repeat_last_n)
        num_prompt = min(len(prompt_token_ids), params.repeat_last_n - num_output)
        prompt_token_ids = prompt_token_ids[len(prompt_token_ids) - num_prompt :]
        output_token_ids = output_token_ids[len(output_token_ids) - num_output :]
    seen = np.unique(np.array(prompt_token_ids + output_token_ids, dtype=np.int64))
    positive = penalised[seen] > 0
    penalised[seen] = np.where(
        positive,
        penalised[seen] / params.repetition_penalty,
        penalised[seen] * params.repetition_penalty,
    )
    token_ids, counts = np.unique(np.array(output_token_ids, dtype=np.int64), return_counts=True)
    penalised[token_ids] -= params.presence_penalty + params.frequency_penalty * counts.astype(
        np.float32
    )
    return penalised


def apply_bans(
    logits: Logits, params: SamplingParams, prompt_token_ids: list[int], output_token_ids: list[int]
) -> Logits:
    """Applies `allowed_token_ids`, `bad_words` and `no_repeat_ngram_size`.

    `bad_words` looks at the output only, as in vLLM; `no_repeat_ngram_size` looks at prompt and
    output, as in transformers.
    """
    banned = logits.copy()
    if params.allowed_token_ids:
        banned[np.setdiff1d(np.arange(logits.size), params.allowed_token_ids)] = -np.inf
    for *before, last in params.bad_words:
        if output_token_ids[len(output_token_ids) - len(before) :] == before:
            banned[last] = -np.inf
    token_ids = prompt_token_ids + output_token_ids
    size = params.no_repeat_ngram_size
    for start in range(len(token_ids) - size + 1 if size else 0):
        *before, last = token_ids[start : start + size]
        if token_ids[len(token_ids) - size + 1 :] == before:
            banned[last] = -np.inf
    return banned


def probabilities(logits: Logits, params: SamplingParams) -> NDArray[np.float64]:
    """Returns the distribution from which a token is drawn.

    The filters come in this order, and each works on the tokens that the filter before it left:
    temperature, `top_k`, `min_p`, `top_p`, `typical_p`. Ties at a boundary stay: every token that
    is as likely, or as typical, as the last token inside the boundary.
    """
    if params.is_greedy:
        greedy = np.zeros(logits.shape, dtype=np.float64)
        greedy[int(np.argmax(logits))] = 1.0
        return greedy
    scaled = logits.astype(np.float64) / params.temperature
    weights = np.exp(scaled - scaled.max())
    if 0 < params.top_k < weights.size:
        weights[weights < np.sort(weights)[-params.top_k]] = 0.0
    weights[weights < params.min_p * weights.max()] = 0.0
    if params.top_p < 1.0:
        descending = np.sort(weights)[::-1]
        last_kept = int(np.searchsorted(np.cumsum(descending), params.top_p * descending.sum()))
        weights[weights < descending[min(last_kept, descending.size - 1)]] = 0.0
    distribution: NDArray[np.float64] = weights / weights.sum()
    return keep_typical(distribution, params.typical_p)


def keep_typical(distribution: NDArray[np.float64], typical_p: float) -> NDArray[np.float64]:
    """Applies locally typical sampling (Meister et al. 2022).

    The tokens whose information is nearest to the entropy stay, up to a mass of `typical_p`.
    """
    if typical_p == 1.0:
        return distribution
    possible = np.flatnonzero(distribution)
    information = -np.log(distribution[possible])
    deviation = np.abs(information - (distribution[possible] * information).sum())
    nearest = np.argsort(deviation, kind="stable")
    last_kept = int(np.searchsorted(np.cumsum(distribution[possible][nearest]), typical_p))
    bound = deviation[nearest[min(last_kept, nearest.size - 1)]]
    kept = np.zeros_like(distribution)
    kept[possible[deviation <= bound]] = distribution[possible[deviation <= bound]]
    typical: NDArray[np.float64] = kept / kept.sum()
    return typical


def find_race_winner(
    distribution: NDArray[np.float64], seed: int, index: int, position: int
) -> int:
    """Returns the token that a given seed draws.

    It has the largest sum of its log probability and its Gumbel noise.
    """
    key = random_bits(seed, index, position)
    possible = np.flatnonzero(distribution)
    noise = np.array([gumbel_noise(key, token_id) for token_id in possible.tolist()])
    return int(possible[(np.log(distribution[possible]) + noise).argmax()])


def gumbel_noise(key: int, token_id: int) -> float:
    """Returns Gumbel noise from the upper 32 bits of SplitMix64's output for the token.

    SplitMix64's last step is left out.
    """
    bits = (key + (token_id + 1) * 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    uniform = ((bits >> 32) + 0.5) / 2**32
    return -math.log(-math.log1p(-uniform))
