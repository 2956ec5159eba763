"""Compares the vectorised sampler with plain reference functions."""

from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.sampling.draws import Draw
from ouzel.engine.sampling.sampler import choose_tokens, draw, prepare
from ouzel.engine.state.sequence import Sequence
from tests.engine.reference_sampling import (
    find_race_winner,
)
from tests.engine.requests import make_request, run_alone
from tests.engine.sampling_cases import (
    BOTH_WAYS,
    KINDS,
    NUM_DRAWS,
    OUTPUT,
    adjust_one,
    compute_distribution,
    make_sequence,
)


def assert_follows(observed: NDArray[np.float64], distribution: NDArray[np.float64]) -> None:
    """Applies a chi-square test over the tokens expected at least 5 times, and the rest as one."""
    expected = distribution * observed.sum()
    assert observed[expected == 0].sum() == 0, "a token outside the support was drawn"
    likely = expected >= 5
    expected_cells = np.append(expected[likely], expected[~likely].sum())
    observed_cells = np.append(observed[likely], observed[~likely].sum())
    cells = expected_cells > 0
    chi_square = float(
        ((observed_cells - expected_cells)[cells] ** 2 / expected_cells[cells]).sum()
    )
    freedom = int(cells.sum()) - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom) + 5, (
        f"chi-square {chi_square:.1f} at {freedom} degrees"
    )


@pytest.mark.parametrize(
    "is_seed_random",
    # for given seeds, test_a_given_seed_draws_the_winner_of_the_race_among_the_kept_tokens predicts
    # each draw
    [
        pytest.param(
            False,
            marks=pytest.mark.release("distributions of draws of given seeds"),
            id="given seed",
        ),
        pytest.param(True, id="random seed"),
    ],
)
@pytest.mark.parametrize("vocab_size", NUM_DRAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_exact_distribution(
    kind: str, vocab_size: int, is_seed_random: bool, before_release: bool
) -> None:
    num_draws = NUM_DRAWS[vocab_size] * (3 if before_release else 1)
    logits = np.random.default_rng(3).normal(scale=1.5, size=vocab_size).astype(np.float32)
    if vocab_size > 23:
        logits[23:] -= 12.0  # a long tail of unlikely tokens
    observed = np.zeros(vocab_size)

    sequences = [
        make_sequence(OUTPUT, seed=seed, is_seed_random=is_seed_random, **KINDS[kind])
        for seed in range(500)
    ]
    rows = [prepare(logits.copy(), sequence) for sequence in sequences]
    for index in range(num_draws // 500):
        for sequence in sequences:
            sequence.index = index  # other random numbers, without the cost of another sequence
        for sampled in draw(rows):
            assert sampled is not None
            observed[sampled.token_id] += 1

    assert_follows(observed, compute_distribution(logits, make_sequence(OUTPUT, **KINDS[kind])))


@BOTH_WAYS
@pytest.mark.parametrize("top_k", [0, 5])
def test_draws_of_a_seed_do_not_depend_on_each_other(top_k: int, is_seed_random: bool) -> None:
    """Pairs of tokens at successive positions follow the product of their distributions."""
    logits = np.random.default_rng(12).normal(size=6).astype(np.float32)
    sequence = make_sequence(seed=5, temperature=1.0, top_k=top_k, is_seed_random=is_seed_random)
    observed = np.zeros((6, 6))

    for _ in range(3_000):
        [first] = draw([prepare(logits.copy(), sequence)])
        sequence.token_ids.append(0)
        [second] = draw([prepare(logits.copy(), sequence)])
        sequence.token_ids.append(0)
        assert first is not None
        assert second is not None
        observed[first.token_id, second.token_id] += 1

    distribution = compute_distribution(logits, sequence)
    assert_follows(observed.ravel(), np.outer(distribution, distribution).ravel())


@pytest.mark.parametrize("vocab_size", NUM_DRAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_given_seed_draws_the_winner_of_the_race_among_the_kept_tokens(
    kind: str, vocab_size: int
) -> None:
    """Filters remove tokens from the race and change nothing else."""
    logits = np.random.default_rng(3).normal(scale=1.5, size=vocab_size).astype(np.float32)
    sequences = [make_sequence(OUTPUT, seed % 3, seed=seed, **KINDS[kind]) for seed in range(-8, 8)]

    drawn = draw([prepare(logits.copy(), sequence) for sequence in sequences])

    distribution = compute_distribution(logits, sequences[0])
    expected = [
        find_race_winner(distribution, each.params.seed, each.index, len(OUTPUT))
        for each in sequences
    ]
    assert [each.token_id for each in drawn if each is not None] == expected


@pytest.mark.release("draws of a sampler in an engine, many times")
def test_rounding_hardly_changes_the_draws_of_a_given_seed() -> None:
    rng = np.random.default_rng(11)
    logits = rng.normal(scale=1.5, size=151_936).astype(np.float32)
    others = [
        logits + rng.normal(scale=0.01, size=logits.size).astype(np.float32) for _ in range(10)
    ]
    sequences: list[Draw] = [
        make_sequence(seed=seed, temperature=1.0) for seed in range(1000, 2000)
    ]

    first = choose_tokens([logits] * len(sequences), sequences)
    second = choose_tokens([others[i % len(others)] for i in range(len(sequences))], sequences)

    assert len(set(first)) > 500  # the row is flat
    assert sum(a != b for a, b in zip(first, second, strict=True)) < 10


@pytest.mark.release("draws of a sampler in an engine, many times")
@BOTH_WAYS
def test_the_engine_draws_from_the_exact_distribution(is_seed_random: bool) -> None:
    """The test draws through `EngineCore`; the model's distribution comes from its logprobs."""
    kinds: dict[str, dict[str, Any]] = {
        "top_p": {"temperature": 1.3, "top_p": 0.9},
        "typical_p": {
            "temperature": 2.0,
            "top_k": 30,
            "typical_p": 0.8,
            "bad_words": ((9,), (5, 11)),
        },
        "bans": {
            "temperature": 2.0,
            "allowed_token_ids": tuple(range(40)),
            "logit_bias": ((3, 2.5),),
        },
    }
    for params in kinds.values():
        engine = EngineCore(
            FakeRunner(num_blocks=2000, max_num_seqs=500, max_num_batched_tokens=500)
        )
        [said] = run_alone(engine, make_request([1, 5], max_tokens=1, num_logprobs=97))
        logits = np.zeros(97, dtype=np.float32)
        for each in said.logprobs[0].top:
            logits[each.token_id] = each.logprob
        observed = np.zeros(97)

        for seed in range(10):
            request = make_request(
                [1, 5], n=500, max_tokens=1, seed=seed, is_seed_random=is_seed_random, **params
            )
            for result in run_alone(engine, request):
                observed[result.token_ids] += 1

        assert observed.sum() == 5000
        sequence = Sequence(make_request([1, 5], **params), 0, 0)
        assert_follows(observed, compute_distribution(logits, sequence))


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1e-40, "top_p": 0.9},
        {"temperature": 3e-5, "top_p": 0.9},
        {"temperature": 2.0, "top_p": 1e-9},
        {"temperature": 2.0, "top_p": 0.0},
        {"temperature": 2.0, "top_p": 0.0, "typical_p": 0.5},
        {"temperature": 2.0, "top_p": 0.0, "top_k": 5, "min_p": 1.0},
        {"temperature": 1.0, "min_p": 0.999999},
        {"temperature": 1.0, "top_k": 1},
        {"temperature": 1.0, "top_k": 2**31 - 1, "top_p": 1e-9},
        {"temperature": 1e-4, "repetition_penalty": 0.01},
        {"temperature": 3e-5, "typical_p": 0.5},
        {"temperature": 2.0, "typical_p": 1e-300},
        {"temperature": 1.0, "typical_p": 1e-9, "top_p": 1e-9, "min_p": 0.999999},
        {"temperature": 2.0, "top_k": 4, "typical_p": 1e-300},
        {"temperature": 1.0, "top_k": 40, "allowed_token_ids": (3,)},
        {"temperature": 1.0, "typical_p": 0.5, "allowed_token_ids": (3,)},
        {"temperature": 1.0, "top_k": 1000, "allowed_token_ids": (1, 3)},
    ],
)
@BOTH_WAYS
@pytest.mark.parametrize("vocab_size", [5, 97, 8192, 10_007])
def test_extreme_values_give_a_token(
    params: dict[str, Any], vocab_size: int, is_seed_random: bool
) -> None:
    logits = np.random.default_rng(6).normal(scale=5, size=vocab_size).astype(np.float32)

    [sampled] = draw(
        [prepare(logits.copy(), make_sequence(is_seed_random=is_seed_random, **params))]
    )

    assert sampled is not None
    assert 0 <= sampled.token_id < vocab_size


@pytest.mark.parametrize(
    "params", [{}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 5}, {"temperature": 1e-4}]
)
@pytest.mark.parametrize("value", [np.nan, -np.inf, np.inf])
@BOTH_WAYS
def test_a_row_that_is_not_usable_gives_none(
    params: dict[str, Any], value: float, is_seed_random: bool
) -> None:
    row = np.full(97, value, dtype=np.float32)

    [sampled] = draw([prepare(row, make_sequence(is_seed_random=is_seed_random, **params))])

    assert sampled is None


@BOTH_WAYS
def test_a_large_top_k_follows_the_exact_distribution(is_seed_random: bool) -> None:
    logits = np.random.default_rng(7).normal(size=2000).astype(np.float32)
    params: dict[str, Any] = {
        "temperature": 1.0,
        "top_k": 1500,
        "top_p": 0.95,
        "is_seed_random": is_seed_random,
    }
    allowed = set(np.flatnonzero(compute_distribution(logits, make_sequence(**params))).tolist())

    sampled = draw(
        [prepare(logits.copy(), make_sequence(seed=seed, **params)) for seed in range(500)]
    )

    assert {each.token_id for each in sampled if each is not None} <= allowed


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_takes_the_most_likely_adjusted_token(kind: str) -> None:
    logits = np.random.default_rng(9).normal(size=(5, 200)).astype(np.float32)
    sequences = [make_sequence(OUTPUT, **{**KINDS[kind], "temperature": 0.0}) for _ in logits]

    chosen = draw(
        [prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)]
    )

    expected = [
        int(adjust_one(row, sequence).argmax())
        for row, sequence in zip(logits, sequences, strict=True)
    ]
    assert [each.token_id for each in chosen if each is not None] == expected


def test_greedy_takes_the_most_likely() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 200)).astype(np.float32)

    chosen = choose_tokens(list(logits), [make_sequence(temperature=0.0)] * 5)

    assert chosen == logits.argmax(axis=1).tolist()


@BOTH_WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_a_rows_token_does_not_depend_on_its_neighbours(kind: str, is_seed_random: bool) -> None:
    kinds = [kind, *KINDS]
    logits = np.random.default_rng(1).normal(size=(len(kinds), 9000)).astype(np.float32)
    sequences = [
        make_sequence(OUTPUT, seed=i, is_seed_random=is_seed_random == (i % 3 < 2), **KINDS[name])
        for i, name in enumerate(kinds)
    ]

    alone = draw([prepare(logits[0].copy(), sequences[0])])
    together = draw(
        [prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)]
    )

    assert together[0] == alone[0]
