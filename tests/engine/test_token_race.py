"""The random numbers of a race, and its winner where few tokens or unlikely ones are left."""

import numpy as np
import pytest

from ouzel.engine.sampling.token_race import TokenRace, exponentials, fill_bounds
from tests.engine.reference_sampling import gumbel_noise

KEY = 1234567
LARGE_KEY = 0xFEDCBA9876543210


def times_of(key: int, token_ids: list[int]) -> list[float]:
    times: list[float] = exponentials(
        np.array(key, dtype=np.uint64), np.array(token_ids, dtype=np.int64)
    ).tolist()
    return times


def bounds_of(key: int, size: int) -> list[float]:
    bounds = np.empty(size, dtype=np.float32)
    fill_bounds(key, bounds)
    result: list[float] = bounds.tolist()
    return result


def race(size: int) -> TokenRace:
    return TokenRace(LARGE_KEY, *np.empty((2, size), dtype=np.float32))


def test_the_random_bits_are_those_of_splitmix64() -> None:
    """The first outputs of its reference code for this seed; the last step is left out and changes bit 32 only."""
    outputs = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]

    bits = [int(-np.expm1(-time) * 2**32) for time in times_of(KEY, list(range(5)))]

    assert [each >> 1 for each in bits] == [each >> 33 for each in outputs]


@pytest.mark.parametrize("key", [0, KEY, LARGE_KEY])
@pytest.mark.parametrize("size", [1, 97, 16_384, 40_000])
def test_bounds_are_the_uniforms_of_the_same_tokens(key: int, size: int) -> None:
    token_ids = [0, size // 3, size // 2, size - 1]

    bounds = bounds_of(key, size)

    uniforms = [float(-np.expm1(-time)) for time in times_of(key, token_ids)]
    assert [bounds[token_id] for token_id in token_ids] == pytest.approx(uniforms, rel=1e-6)
    assert min(bounds) > 0


def test_times_are_those_of_the_reference() -> None:
    token_ids = [0, 5, 16_384, 151_935]

    noise = [gumbel_noise(LARGE_KEY, token_id) for token_id in token_ids]

    assert (-np.log(times_of(LARGE_KEY, token_ids))).tolist() == pytest.approx(noise, rel=1e-12)


@pytest.mark.parametrize("weight", [1.0, 1e-20, 1e-44])
def test_the_only_token_wins_whatever_its_time(weight: float) -> None:
    """Of 40,000 tokens some have a time that float32 rounds to the end of the range."""
    size = 40_000
    slowest = int(np.argmax(times_of(LARGE_KEY, list(range(size)))))
    weights = np.zeros(size, dtype=np.float32)
    weights[slowest] = weight

    assert race(size).pick(weights) == slowest


def test_tokens_of_equal_weight_come_in_by_their_times() -> None:
    size = 20_000
    order = np.argsort(times_of(LARGE_KEY, list(range(size)))).tolist()
    tokens = race(size)
    weights = np.ones(size, dtype=np.float32)

    for token_id in order[:20]:
        assert tokens.pick(weights) == token_id
        weights[token_id] = 0.0
    for token_id in order[20:-20]:
        weights[token_id] = 0.0
    for token_id in order[-20:]:
        assert tokens.pick(weights) == token_id
        weights[token_id] = 0.0
