"""The vectorised sampler against the plain reference functions of `ouzel.sampling`."""

from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.engine.philox import philox4x32, uniforms
from ouzel.engine.sampler import OwnLogprobs, adjust, choose_tokens, draw, largest, prepare
from ouzel.engine.sequence import Sequence
from ouzel.sampling import apply_logit_bias, apply_penalties, probabilities
from tests.engine.requests import make_request

NUM_DRAWS = {23: 20_000, 10_007: 3_000}  # by vocabulary size: short rows and long ones go different ways

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
    "penalties": {"temperature": 1.0, "repetition_penalty": 1.4, "presence_penalty": 0.6, "frequency_penalty": 0.3},
}


def sequence_with(output_token_ids: list[int] | None = None, index: int = 0, **params: Any) -> Sequence:
    sequence = Sequence(make_request([1, 2, 3, 2], max_tokens=10**9, **params), index, 0)
    sequence.token_ids += output_token_ids or []
    return sequence


def exact_distribution(logits: NDArray[np.float32], sequence: Sequence) -> NDArray[np.float64]:
    params = sequence.params
    output = sequence.token_ids[sequence.num_prompt_tokens :]
    biased = apply_logit_bias(logits, params)
    return probabilities(apply_penalties(biased, params, sequence.request.prompt_token_ids, output), params)


@pytest.mark.parametrize("vocab_size", NUM_DRAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_exact_distribution(kind: str, vocab_size: int) -> None:
    num_draws = NUM_DRAWS[vocab_size]
    logits = np.random.default_rng(3).normal(scale=1.5, size=vocab_size).astype(np.float32)
    if vocab_size > 23:
        logits[23:] -= 12.0  # a long tail of unlikely tokens
    output = [4, 4, 6]
    expected = exact_distribution(logits, sequence_with(output, **KINDS[kind])) * num_draws
    observed = np.zeros(vocab_size)

    for index in range(num_draws // 500):
        sequences = [sequence_with(output, index, seed=seed, **KINDS[kind]) for seed in range(500)]
        rows = [prepare(logits.copy(), sequence) for sequence in sequences]
        for sampled in draw(rows):
            assert sampled is not None
            observed[sampled.token_id] += 1

    assert observed[expected == 0].sum() == 0, "a token outside the support was drawn"
    likely = expected >= 5
    expected_cells = np.append(expected[likely], expected[~likely].sum())
    observed_cells = np.append(observed[likely], observed[~likely].sum())
    cells = expected_cells > 0
    chi_square = float(((observed_cells - expected_cells)[cells] ** 2 / expected_cells[cells]).sum())
    freedom = int(cells.sum()) - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom) + 5, f"chi-square {chi_square:.1f} at {freedom} degrees"


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1e-40, "top_p": 0.9},
        {"temperature": 3e-5, "top_p": 0.9},
        {"temperature": 2.0, "top_p": 1e-9},
        {"temperature": 1.0, "min_p": 0.999999},
        {"temperature": 1.0, "top_k": 1},
        {"temperature": 1.0, "top_k": 2**31 - 1, "top_p": 1e-9},
        {"temperature": 1e-4, "repetition_penalty": 0.01},
    ],
)
@pytest.mark.parametrize("vocab_size", [5, 97, 8192, 10_007])
def test_extreme_values_give_a_token(params: dict[str, Any], vocab_size: int) -> None:
    logits = np.random.default_rng(6).normal(scale=5, size=vocab_size).astype(np.float32)

    [sampled] = draw([prepare(logits.copy(), sequence_with(**params))])

    assert sampled is not None
    assert 0 <= sampled.token_id < vocab_size


@pytest.mark.parametrize("params", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}, {"temperature": 1e-4}])
@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
def test_a_row_that_is_not_usable_gives_none(params: dict[str, Any], value: float) -> None:
    [sampled] = draw([prepare(np.full(97, value, dtype=np.float32), sequence_with(**params))])

    assert sampled is None


def test_a_large_top_k_follows_the_exact_distribution() -> None:
    logits = np.random.default_rng(7).normal(size=2000).astype(np.float32)
    params: dict[str, Any] = {"temperature": 1.0, "top_k": 1500, "top_p": 0.95}
    allowed = set(np.flatnonzero(exact_distribution(logits, sequence_with(**params))).tolist())

    sampled = draw([prepare(logits.copy(), sequence_with(seed=seed, **params)) for seed in range(500)])

    assert {each.token_id for each in sampled if each is not None} <= allowed


def test_greedy_takes_the_most_likely() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 200)).astype(np.float32)

    chosen = choose_tokens(list(logits), [sequence_with(temperature=0.0)] * 5)

    assert chosen == logits.argmax(axis=1).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_rows_token_does_not_depend_on_its_neighbours(kind: str) -> None:
    logits = np.random.default_rng(1).normal(size=(8, 9000)).astype(np.float32)
    kinds = [kind, *list(KINDS)[:7]]
    sequences = [sequence_with(seed=i, **KINDS[name]) for i, name in enumerate(kinds)]

    alone = draw([prepare(logits[0].copy(), sequences[0])])
    together = draw([prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)])

    assert together[0] == alone[0]


@pytest.mark.parametrize("params", [KINDS["penalties"], KINDS["logit_bias"]])
def test_adjusting_equals_the_reference(params: dict[str, Any]) -> None:
    logits = np.random.default_rng(2).normal(size=50).astype(np.float32)
    sequence = sequence_with([7, 7, 9, 1], **params)
    row = logits.copy()

    adjust(row, sequence)

    biased = apply_logit_bias(logits, sequence.params)
    expected = apply_penalties(biased, sequence.params, [1, 2, 3, 2], [7, 7, 9, 1])
    np.testing.assert_allclose(row, expected, rtol=1e-6)


def test_min_tokens_forbids_end_and_stop_tokens() -> None:
    request = make_request([1], min_tokens=2, stop_token_ids=(5,), eos_token_ids=(6,))
    row = np.zeros(10, dtype=np.float32)

    adjust(row, Sequence(request, 0, 0))

    assert np.flatnonzero(np.isneginf(row)).tolist() == [5, 6]


@pytest.mark.parametrize("num", [1, 5, 40, 300, 9000])
def test_largest_holds_the_largest(num: int) -> None:
    row = np.random.default_rng(4).normal(size=10_001).astype(np.float32)

    found = largest(row, num)

    assert set(np.argsort(row)[-num:].tolist()) <= set(found.tolist())


def test_logprobs_are_log_softmax_of_the_unadjusted_row() -> None:
    logits = np.random.default_rng(5).normal(scale=4, size=9001).astype(np.float32)
    exact = logits.astype(np.float64) - np.log(np.exp(logits.astype(np.float64)).sum())

    position = OwnLogprobs(logits, 20).at(17)

    assert position.sampled.logprob == pytest.approx(exact[17], abs=1e-3)
    assert [each.token_id for each in position.top] == np.argsort(-exact)[:20].tolist()
    assert [each.logprob for each in position.top] == pytest.approx(np.sort(exact)[::-1][:20].tolist(), abs=1e-3)


def test_philox_known_answers() -> None:
    """From the authors' Random123 distribution, file kat_vectors."""
    counters = np.array([[0, 0xFFFFFFFF, 0x243F6A88], [0, 0xFFFFFFFF, 0x85A308D3]], dtype=np.uint64)
    rest = np.array([[0, 0xFFFFFFFF, 0x13198A2E], [0, 0xFFFFFFFF, 0x03707344]], dtype=np.uint64)
    keys = np.array([[0, 0xFFFFFFFF, 0xA4093822], [0, 0xFFFFFFFF, 0x299F31D0]], dtype=np.uint64)

    words = philox4x32(np.concatenate([counters, rest]), keys)

    assert [f"{word:08x}" for word in words[:, 0].tolist()] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert [f"{word:08x}" for word in words[:, 1].tolist()] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]
    assert [f"{word:08x}" for word in words[:, 2].tolist()] == ["d16cfe09", "94fdcceb", "5001e420", "24126ea1"]


def test_uniforms_differ_by_seed_choice_position_and_draw() -> None:
    zero = np.zeros(1, dtype=np.int64)
    draws = [
        uniforms(zero + a, zero + b, zero + c, d)[0] for a in (0, -1) for b in (0, 1) for c in (0, 1) for d in (0, 1)
    ]

    assert len(set(draws)) == 16
    assert all(0 <= each < 1 for each in draws)
