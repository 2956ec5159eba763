"""Provides settings of the sampler, and the exact distribution of a token under each."""

from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.engine.state.sequence import Sequence
from tests.engine.reference_sampling import (
    apply_bans,
    apply_logit_bias,
    apply_penalties,
    probabilities,
)
from tests.engine.requests import make_request

# keys: vocabulary sizes; short rows and long rows take different code
NUM_DRAWS = {
    23: 8_000,
    10_007: 2_000,
}

KINDS: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.7},
    "hot": {"temperature": 1.9},
    "top_k": {"temperature": 1.0, "top_k": 7},
    "top_p": {"temperature": 1.0, "top_p": 0.7},
    "low top_p": {"temperature": 1.0, "top_p": 0.2},
    "min_p": {"temperature": 1.0, "min_p": 0.2},
    "top_k and top_p": {"temperature": 0.8, "top_k": 9, "top_p": 0.6},
    "top_k and min_p": {"temperature": 1.2, "top_k": 12, "min_p": 0.1},
    "min_p and top_p": {"temperature": 1.5, "min_p": 0.05, "top_p": 0.9},
    "all": {"temperature": 1.1, "top_k": 15, "min_p": 0.02, "top_p": 0.85},
    "logit_bias": {"temperature": 1.0, "logit_bias": ((2, 3.0), (5, -4.0))},
    "penalties": {
        "temperature": 1.0,
        "repetition_penalty": 1.4,
        "presence_penalty": 0.6,
        "frequency_penalty": 0.3,
    },
    "penalties of the last 4": {
        "temperature": 1.0,
        "repetition_penalty": 1.4,
        "presence_penalty": 0.6,
        "frequency_penalty": 0.3,
        "repeat_last_n": 4,
    },
    "penalties of the last 2": {"temperature": 1.0, "repetition_penalty": 0.5, "repeat_last_n": 2},
    "penalties of more than there are": {
        "temperature": 1.0,
        "presence_penalty": 0.9,
        "repeat_last_n": 64,
    },
    "typical_p": {"temperature": 1.0, "typical_p": 0.8},
    "low typical_p": {"temperature": 1.3, "typical_p": 0.2},
    "typical_p and top_k": {"temperature": 1.0, "top_k": 12, "typical_p": 0.6},
    "typical_p and top_p": {"temperature": 1.1, "top_p": 0.9, "typical_p": 0.7},
    "typical_p and min_p": {"temperature": 1.4, "min_p": 0.03, "typical_p": 0.9},
    "bad_words": {"temperature": 1.0, "bad_words": ((7,), (2, 9), (4, 2, 11), (6, 12), (4, 4, 4))},
    "allowed_token_ids": {"temperature": 1.0, "allowed_token_ids": (3, 5, 8, 8, 21)},
    "no_repeat_ngram_size": {"temperature": 1.0, "no_repeat_ngram_size": 2},
    "all with typical_p": {
        "temperature": 1.1,
        "top_k": 15,
        "min_p": 0.02,
        "top_p": 0.95,
        "typical_p": 0.85,
    },
    "bans with top_k": {
        "temperature": 0.9,
        "top_k": 10,
        "allowed_token_ids": tuple(range(1, 22, 2)),
        "bad_words": ((2, 9), (5,)),
        "no_repeat_ngram_size": 1,
    },
    "everything": {
        "temperature": 1.2,
        "top_p": 0.9,
        "min_p": 0.01,
        "typical_p": 0.9,
        "logit_bias": ((2, 2.0), (5, -1.0)),
        "repetition_penalty": 1.2,
        "presence_penalty": 0.4,
        "frequency_penalty": -0.3,
        "allowed_token_ids": tuple(range(20)),
        "bad_words": ((2, 9),),
        "no_repeat_ngram_size": 3,
    },
}
BOTH_WAYS = pytest.mark.parametrize(
    "is_seed_random", [False, True], ids=["given seed", "random seed"]
)
OUTPUT = [4, 4, 2]  # the tokens that bans and penalties look at


def make_sequence(
    output_token_ids: list[int] | None = None, index: int = 0, **params: Any
) -> Sequence:
    sequence = Sequence(make_request([1, 2, 3, 2], max_tokens=10**9, **params), index, 0)
    sequence.token_ids += output_token_ids or []
    return sequence


def adjust_one(logits: NDArray[np.float32], sequence: Sequence) -> NDArray[np.float32]:
    params, prompt = sequence.params, sequence.request.prompt_token_ids
    output = sequence.token_ids[sequence.num_prompt_tokens :]
    penalised = apply_penalties(apply_logit_bias(logits, params), params, prompt, output)
    return apply_bans(penalised, params, prompt, output)


def compute_distribution(logits: NDArray[np.float32], sequence: Sequence) -> NDArray[np.float64]:
    return probabilities(adjust_one(logits, sequence), sequence.params)
