"""Tests the random numbers of a race, and its winner among few or unlikely tokens."""

import numpy as np
import pytest

from ouzel.engine.sampling.token_race import TokenRace, exponentials, fill_bounds
from tests.engine.reference_sampling import gumbel_noise

KEY = 1234567
LARGE_KEY = 0xFEDCBA9876543210


def compute_times(key: int, token_ids: list[int]) -> list[float]:
    times: list[float] = exponentials(
        np.array(key, dtype=np.uint64), np.array(token_ids, dtype=np.int64)
    ).tolist()
    return times


def compute_bounds(key: int, size: int) -> list[float]:
    bounds = np.empty(size, dtype=np.float32)
    fill_bounds(key, bounds)
    result: list[float] = bounds.tolist()
    return result


def make_race(size: int) -> TokenRace:
    return TokenRace(LARGE_KEY, *np.empty((2, size), dtype=np.float32))


def test_the_random_bits_equal_splitmix64s() -> None:
    """The outputs are the first of SplitMix64's reference code for this seed.

    The race leaves out SplitMix64's last step, which would change only bit 32.
    """
    outputs = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]

    bits = [int(-np.expm1(-time) * 2**32) for time in compute_times(KEY, list(range(5)))]

    assert [each >> 1 for each in bits] == [each >> 33 for each in outputs]


@pytest.mark.parametrize("key", [0, KEY, LARGE_KEY])
@pytest.mark.parametrize("size", [1, 97, 16_384, 40_000])
def test_bounds_are_the_same_tokens_uniforms(key: int, size: int) -> None:
    token_ids = [0, size // 3, size // 2, size - 1]

    bounds = compute_bounds(key, size)

    uniforms = [float(-np.expm1(-time)) for time in compute_times(key, token_ids)]
    assert [bounds[token_id] for token_id in token_ids] == pytest.approx(uniforms, rel=1e-6)
    assert min(bounds) > 0


def test_times_equal_the_references() -> None:
    token_ids = [0, 5, 16_384, 151_935]

    noise = [gumbel_noise(LARGE_KEY, token_id) for token_id in token_ids]

    assert (-np.log(compute_times(LARGE_KEY, token_ids))).tolist() == pytest.approx(
        noise, rel=1e-12
    )


@pytest.mark.parametrize("weight", [1.0, 1e-20, 1e-44])
def test_the_only_token_wins_whatever_its_time(weight: float) -> None:
    """Some of the 40,000 tokens have a time that float32 rounds to the end of the range."""
    size = 40_000
    slowest = int(np.argmax(compute_times(LARGE_KEY, list(range(size)))))
    weights = np.zeros(size, dtype=np.float32)
    weights[slowest] = weight

    assert make_race(size).pick(weights) == slowest


def test_tokens_of_equal_weight_come_in_by_their_times() -> None:
    size = 20_000
    order = np.argsort(compute_times(LARGE_KEY, list(range(size)))).tolist()
    tokens = make_race(size)
    weights = np.ones(size, dtype=np.float32)

    for token_id in order[:20]:
        assert tokens.pick(weights) == token_id
        weights[token_id] = 0.0
    for token_id in order[20:-20]:
        weights[token_id] = 0.0
    for token_id in order[-20:]:
        assert tokens.pick(weights) == token_id
        weights[token_id] = 0.0
