"""The vectorised sampler against plain reference functions."""

from typing import Any  # sampling parameters are forwarded as they are

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.sampling.draws import Draw
from ouzel.engine.sampling.own_logprobs import OwnLogprobs
from ouzel.engine.sampling.philox import philox4x32, random_bits, uniform, uniforms
from ouzel.engine.sampling.sampler import adjust, choose_tokens, draw, prepare
from ouzel.engine.state.columns import largest
from ouzel.engine.state.sequence import Sequence
from tests.engine.reference_sampling import (
    apply_bans,
    apply_logit_bias,
    apply_penalties,
    probabilities,
    race_winner,
)
from tests.engine.requests import make_request, run_alone

NUM_DRAWS = {
    23: 8_000,
    10_007: 2_000,
}  # by vocabulary size: short rows and long ones go different ways

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
OUTPUT = [4, 4, 2]  # what a sequence has generated where bans and penalties look


def sequence_with(
    output_token_ids: list[int] | None = None, index: int = 0, **params: Any
) -> Sequence:
    sequence = Sequence(make_request([1, 2, 3, 2], max_tokens=10**9, **params), index, 0)
    sequence.token_ids += output_token_ids or []
    return sequence


def adjusted(logits: NDArray[np.float32], sequence: Sequence) -> NDArray[np.float32]:
    params, prompt = sequence.params, sequence.request.prompt_token_ids
    output = sequence.token_ids[sequence.num_prompt_tokens :]
    penalised = apply_penalties(apply_logit_bias(logits, params), params, prompt, output)
    return apply_bans(penalised, params, prompt, output)


def exact_distribution(logits: NDArray[np.float32], sequence: Sequence) -> NDArray[np.float64]:
    return probabilities(adjusted(logits, sequence), sequence.params)


def assert_follows(observed: NDArray[np.float64], distribution: NDArray[np.float64]) -> None:
    """Chi-square, over the tokens expected at least 5 times and the rest together."""
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
    [  # test_a_given_seed_draws_the_winner_of_the_race_among_the_kept_tokens knows each draw of a given seed
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
        sequence_with(OUTPUT, seed=seed, is_seed_random=is_seed_random, **KINDS[kind])
        for seed in range(500)
    ]
    rows = [prepare(logits.copy(), sequence) for sequence in sequences]
    for index in range(num_draws // 500):
        for sequence in sequences:
            sequence.index = index  # other random numbers, without the cost of another sequence
        for sampled in draw(rows):
            assert sampled is not None
            observed[sampled.token_id] += 1

    assert_follows(observed, exact_distribution(logits, sequence_with(OUTPUT, **KINDS[kind])))


@BOTH_WAYS
@pytest.mark.parametrize("top_k", [0, 5])
def test_draws_of_a_seed_do_not_depend_on_each_other(top_k: int, is_seed_random: bool) -> None:
    """Pairs of tokens at successive positions follow the product of their distributions."""
    logits = np.random.default_rng(12).normal(size=6).astype(np.float32)
    sequence = sequence_with(seed=5, temperature=1.0, top_k=top_k, is_seed_random=is_seed_random)
    observed = np.zeros((6, 6))

    for _ in range(3_000):
        [first] = draw([prepare(logits.copy(), sequence)])
        sequence.token_ids.append(0)
        [second] = draw([prepare(logits.copy(), sequence)])
        sequence.token_ids.append(0)
        assert first is not None
        assert second is not None
        observed[first.token_id, second.token_id] += 1

    distribution = exact_distribution(logits, sequence)
    assert_follows(observed.ravel(), np.outer(distribution, distribution).ravel())


@pytest.mark.parametrize("vocab_size", NUM_DRAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_given_seed_draws_the_winner_of_the_race_among_the_kept_tokens(
    kind: str, vocab_size: int
) -> None:
    """So filters only take tokens out of the race."""
    logits = np.random.default_rng(3).normal(scale=1.5, size=vocab_size).astype(np.float32)
    sequences = [sequence_with(OUTPUT, seed % 3, seed=seed, **KINDS[kind]) for seed in range(-8, 8)]

    drawn = draw([prepare(logits.copy(), sequence) for sequence in sequences])

    distribution = exact_distribution(logits, sequences[0])
    expected = [
        race_winner(distribution, each.params.seed, each.index, len(OUTPUT)) for each in sequences
    ]
    assert [each.token_id for each in drawn if each is not None] == expected


def test_rounding_hardly_changes_the_draws_of_a_given_seed() -> None:
    rng = np.random.default_rng(11)
    logits = rng.normal(scale=1.5, size=151_936).astype(np.float32)
    others = [
        logits + rng.normal(scale=0.01, size=logits.size).astype(np.float32) for _ in range(10)
    ]
    sequences: list[Draw] = [
        sequence_with(seed=seed, temperature=1.0) for seed in range(1000, 2000)
    ]

    first = choose_tokens([logits] * len(sequences), sequences)
    second = choose_tokens([others[i % len(others)] for i in range(len(sequences))], sequences)

    assert len(set(first)) > 500  # the row is flat
    assert sum(a != b for a, b in zip(first, second, strict=True)) < 10


@BOTH_WAYS
def test_the_engine_draws_from_the_exact_distribution(is_seed_random: bool) -> None:
    """Through `EngineCore`; the model's distribution is what it says as logprobs."""
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
        assert_follows(observed, exact_distribution(logits, sequence))


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
        [prepare(logits.copy(), sequence_with(is_seed_random=is_seed_random, **params))]
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

    [sampled] = draw([prepare(row, sequence_with(is_seed_random=is_seed_random, **params))])

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
    allowed = set(np.flatnonzero(exact_distribution(logits, sequence_with(**params))).tolist())

    sampled = draw(
        [prepare(logits.copy(), sequence_with(seed=seed, **params)) for seed in range(500)]
    )

    assert {each.token_id for each in sampled if each is not None} <= allowed


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_takes_the_most_likely_of_the_adjusted(kind: str) -> None:
    logits = np.random.default_rng(9).normal(size=(5, 200)).astype(np.float32)
    sequences = [sequence_with(OUTPUT, **{**KINDS[kind], "temperature": 0.0}) for _ in logits]

    chosen = draw(
        [prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)]
    )

    expected = [
        int(adjusted(row, sequence).argmax())
        for row, sequence in zip(logits, sequences, strict=True)
    ]
    assert [each.token_id for each in chosen if each is not None] == expected


def test_greedy_takes_the_most_likely() -> None:
    logits = np.random.default_rng(0).normal(size=(5, 200)).astype(np.float32)

    chosen = choose_tokens(list(logits), [sequence_with(temperature=0.0)] * 5)

    assert chosen == logits.argmax(axis=1).tolist()


@BOTH_WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_a_rows_token_does_not_depend_on_its_neighbours(kind: str, is_seed_random: bool) -> None:
    kinds = [kind, *KINDS]
    logits = np.random.default_rng(1).normal(size=(len(kinds), 9000)).astype(np.float32)
    sequences = [
        sequence_with(OUTPUT, seed=i, is_seed_random=is_seed_random == (i % 3 < 2), **KINDS[name])
        for i, name in enumerate(kinds)
    ]

    alone = draw([prepare(logits[0].copy(), sequences[0])])
    together = draw(
        [prepare(row.copy(), sequence) for row, sequence in zip(logits, sequences, strict=True)]
    )

    assert together[0] == alone[0]


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if sequence_with(**KINDS[kind]).params.adjusts_logits]
)
def test_adjusting_token_by_token_equals_the_reference(kind: str) -> None:
    logits = np.random.default_rng(2).normal(size=50).astype(np.float32)
    sequence = sequence_with(**KINDS[kind])
    for token_id in (4, 4, 2, 4, 2, 9, 1, 2, 4):
        sequence.token_ids.append(token_id)
        row = logits.copy()

        adjust(row, sequence)

        np.testing.assert_allclose(row, adjusted(logits, sequence), rtol=1e-5)


def test_presence_and_frequency_are_subtracted_from_negative_logits_too() -> None:
    row = np.array([-1.0, 2.0, -3.0, 0.0], dtype=np.float32)

    adjust(row, sequence_with([0, 0, 1], presence_penalty=0.5, frequency_penalty=0.25))

    assert row.tolist() == [-2.0, 1.25, -3.0, 0.0]


@pytest.mark.parametrize(
    ("bad_words", "output", "banned"),
    [
        (((7,),), [], [7]),
        (((7,),), [7, 7], [7]),
        (((5, 7),), [], []),
        (((5, 7),), [6, 5], [7]),
        (((5, 7),), [5, 6], []),
        (((5, 6, 7), (6, 8), (5, 9)), [5, 6], [7, 8]),
        (((5, 5, 5),), [5, 5], [5]),
        (((3, 2, 8), (2, 9)), [], []),  # the prompt ends with 3, 2
        (((3, 2, 8), (2, 5, 9), (5, 9)), [5], [9]),
    ],
)
def test_a_bad_word_cannot_be_completed(
    bad_words: tuple[tuple[int, ...], ...], output: list[int], banned: list[int]
) -> None:
    row = np.zeros(10, dtype=np.float32)

    adjust(row, sequence_with(output, bad_words=bad_words))

    assert np.flatnonzero(np.isneginf(row)).tolist() == banned


@pytest.mark.parametrize(
    ("size", "banned"),
    [(1, [1, 2, 3, 4]), (2, [2, 3, 4]), (3, [2]), (4, []), (7, []), (8, []), (64, [])],
)
def test_no_ngram_of_prompt_and_output_comes_twice(size: int, banned: list[int]) -> None:
    row = np.zeros(10, dtype=np.float32)

    adjust(row, sequence_with([2, 4, 3, 2], no_repeat_ngram_size=size))  # after 1, 2, 3, 2

    assert np.flatnonzero(np.isneginf(row)).tolist() == banned


def test_min_tokens_forbids_end_and_stop_tokens() -> None:
    request = make_request([1], min_tokens=2, stop_token_ids=(5,), eos_token_ids=(6,))
    row = np.zeros(10, dtype=np.float32)

    adjust(row, Sequence(request, 0, 0))

    assert np.flatnonzero(np.isneginf(row)).tolist() == [5, 6]


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
    sequences = [sequence_with(OUTPUT, seed=seed, num_logprobs=3, **params) for seed in range(16)]

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
def test_largest_leaves_out_what_is_impossible(num: int, possible: list[int]) -> None:
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


def test_philox_known_answers() -> None:
    """From the authors' Random123 distribution, file kat_vectors."""
    counters = np.array([[0, 0xFFFFFFFF, 0x243F6A88], [0, 0xFFFFFFFF, 0x85A308D3]], dtype=np.uint64)
    rest = np.array([[0, 0xFFFFFFFF, 0x13198A2E], [0, 0xFFFFFFFF, 0x03707344]], dtype=np.uint64)
    keys = np.array([[0, 0xFFFFFFFF, 0xA4093822], [0, 0xFFFFFFFF, 0x299F31D0]], dtype=np.uint64)

    words = philox4x32(np.concatenate([counters, rest]), keys)

    assert [f"{word:08x}" for word in words[:, 0].tolist()] == [
        "6627e8d5",
        "e169c58d",
        "bc57ac4c",
        "9b00dbd8",
    ]
    assert [f"{word:08x}" for word in words[:, 1].tolist()] == [
        "408f276d",
        "41c83b0e",
        "a20bc7c6",
        "6d5451fd",
    ]
    assert [f"{word:08x}" for word in words[:, 2].tolist()] == [
        "d16cfe09",
        "94fdcceb",
        "5001e420",
        "24126ea1",
    ]


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, -(2**63), 0x123456789ABCDEF])
def test_one_uniform_is_that_of_a_batch(seed: int) -> None:
    rows = [
        (index, position, draw)
        for index in (0, 3)
        for position in (0, 70_000)
        for draw in (1, 2, 900)
    ]
    indices, positions, draws = np.array(rows, dtype=np.int64).T

    batch = uniforms(np.full(len(rows), seed, dtype=np.int64), indices, positions, draws)

    assert [uniform(seed, *row) for row in rows] == batch.tolist()


def test_random_bits_are_of_counters_that_no_uniform_has() -> None:
    counters = np.array([[70_000], [3], [0], [1]], dtype=np.uint64)
    words = philox4x32(counters, np.array([[0x89ABCDEF], [0x1234567]], dtype=np.uint64))

    assert random_bits(0x123456789ABCDEF, 3, 70_000) == int(words[0, 0]) << 32 | int(words[1, 0])


def test_uniforms_differ_by_seed_choice_position_and_draw() -> None:
    zero = np.zeros(1, dtype=np.int64)
    draws = [
        uniforms(zero + a, zero + b, zero + c, zero + d)[0]
        for a in (0, -1)
        for b in (0, 1)
        for c in (0, 1)
        for d in (0, 1)
    ]

    assert len(set(draws)) == 16
    assert all(0 <= each < 1 for each in draws)
