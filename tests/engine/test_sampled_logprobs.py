"""Tests the logprobs of sampled tokens, and the search of the largest values of a row."""

import numpy as np
import pytest

from ouzel.engine.sampling.own_logprobs import OwnLogprobs
from ouzel.engine.sampling.sampler import draw, prepare
from ouzel.engine.state.columns import largest
from tests.engine.sampling_cases import KINDS, NUM_DRAWS, OUTPUT, make_sequence


@pytest.mark.parametrize("num", [1, 5, 40, 300, 9000])
@pytest.mark.parametrize("size", [9000, 10_001, 10_240])
def test_largest_holds_the_largest(num: int, size: int) -> None:
    row = np.random.default_rng(4).normal(size=size).astype(np.float32)

    found = largest(row, num)

    assert set(np.argsort(row)[-num:].tolist()) <= set(found.tolist())


@pytest.mark.parametrize("vocab_size", NUM_DRAWS)
@pytest.mark.parametrize("temperature", [None, 0.0])
@pytest.mark.parametrize("kind", KINDS)
def test_sampled_logprobs_are_the_models_own(
    kind: str, temperature: float | None, vocab_size: int
) -> None:
    logits = np.random.default_rng(8).normal(scale=4, size=(16, vocab_size)).astype(np.float32)
    exact = logits.astype(np.float64) - np.log(
        np.exp(logits.astype(np.float64)).sum(axis=1, keepdims=True)
    )
    params = KINDS[kind] if temperature is None else {**KINDS[kind], "temperature": temperature}
    sequences = [make_sequence(OUTPUT, seed=seed, num_logprobs=3, **params) for seed in range(16)]

    drawn = draw(
        [prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)]
    )

    for sampled, own in zip(drawn, exact, strict=True):
        assert sampled is not None
        assert sampled.logprobs is not None
        assert sampled.logprobs.sampled.token_id == sampled.token_id
        assert sampled.logprobs.sampled.logprob == pytest.approx(own[sampled.token_id], abs=1e-3)
        assert [each.token_id for each in sampled.logprobs.top] == np.argsort(-own)[:3].tolist()
        assert [each.logprob for each in sampled.logprobs.top] == pytest.approx(
            -np.sort(-own)[:3], abs=1e-3
        )


@pytest.mark.parametrize("num", [1, 5, 40, 300, 9000])
@pytest.mark.parametrize("possible", [[], [3], [9999], [0, 1024, 9999, 10_000], list(range(50))])
def test_largest_leaves_out_impossible_tokens(num: int, possible: list[int]) -> None:
    row = np.full(10_001, -np.inf, dtype=np.float32)
    row[possible] = np.arange(len(possible), dtype=np.float32)

    found = set(largest(row, num).tolist())

    assert set(possible[-num:]) <= found <= set(possible)


@pytest.mark.parametrize("shift", [-1e4, -70.0, 70.0, 1e4])
def test_logprobs_of_large_logits_do_not_overflow(shift: float) -> None:
    logits = np.random.default_rng(5).normal(size=97).astype(np.float32)
    shifted = (logits + np.float32(shift)).astype(np.float64)
    exact = shifted - shifted.max() - np.log(np.exp(shifted - shifted.max()).sum())

    position = OwnLogprobs(logits + np.float32(shift), 0).at(17)

    assert position.sampled.logprob == pytest.approx(exact[17], abs=2e-3)


def test_logprobs_are_log_softmax_of_the_unadjusted_row() -> None:
    logits = np.random.default_rng(5).normal(scale=4, size=9001).astype(np.float32)
    exact = logits.astype(np.float64) - np.log(np.exp(logits.astype(np.float64)).sum())

    position = OwnLogprobs(logits, 20).at(17)

    assert position.sampled.logprob == pytest.approx(exact[17], abs=1e-3)
    assert [each.token_id for each in position.top] == np.argsort(-exact)[:20].tolist()
    assert [each.logprob for each in position.top] == pytest.approx(
        np.sort(exact)[::-1][:20].tolist(), abs=1e-3
    )
