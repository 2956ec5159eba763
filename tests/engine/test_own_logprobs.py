"""Tests the logprobs of a row of logits."""

import numpy as np
import pytest

from ouzel.engine.sampling.own_logprobs import OwnLogprobs


@pytest.mark.parametrize("certain", [float(logit) for logit in np.linspace(1, 59, 30)])
def test_no_logprob_is_above_zero(certain: float) -> None:
    row = np.full(100, certain - 40, np.float32)
    row[7] = certain
    logprobs = OwnLogprobs(row, 2).at(7)
    assert -1e-5 < logprobs.sampled.logprob <= 0
    assert [each.logprob <= 0 for each in logprobs.top] == [True, True]


def test_tokens_asked_for_follow_the_most_likely_and_come_once() -> None:
    row = np.arange(50, dtype=np.float32)
    logprobs = OwnLogprobs(row, 2, (3, 49, 7, 3)).at(7)
    assert [each.token_id for each in logprobs.top] == [49, 48, 3, 7]
    assert logprobs.top[3] == logprobs.sampled


@pytest.mark.parametrize("num_top", [0, 50])
def test_tokens_asked_for_are_shown_beside_none_and_beside_all(num_top: int) -> None:
    row = np.arange(50, dtype=np.float32)
    logprobs = OwnLogprobs(row, num_top, (3,)).at(7)
    assert [each.token_id for each in logprobs.top] == ([*range(49, -1, -1)] if num_top else [3])
