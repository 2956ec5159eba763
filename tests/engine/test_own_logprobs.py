"""Logprobs of a row of logits."""

import numpy as np
import pytest

from ouzel.engine.own_logprobs import OwnLogprobs


@pytest.mark.parametrize("certain", [float(logit) for logit in np.linspace(1, 59, 30)])
def test_no_logprob_is_above_zero(certain: float) -> None:
    row = np.full(100, certain - 40, np.float32)
    row[7] = certain
    logprobs = OwnLogprobs(row, 2).at(7)
    assert -1e-5 < logprobs.sampled.logprob <= 0
    assert [each.logprob <= 0 for each in logprobs.top] == [True, True]
