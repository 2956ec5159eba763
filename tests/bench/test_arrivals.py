"""Requests are due at the rate and with the distribution that `vllm bench serve` defines."""

import itertools
import random
import statistics

import pytest

from ouzel.bench.load import arrival_times

COUNT = 20_000


def times(
    burstiness: float, *, count: int = COUNT, request_rate: float = 10.0, seed: int = 1
) -> list[float]:
    return arrival_times(
        count, request_rate=request_rate, burstiness=burstiness, rng=random.Random(seed)
    )


def intervals(burstiness: float) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise([0.0, *times(burstiness)])]


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 16.0])
def test_the_rate_of_every_run_is_the_one_that_was_asked_for(burstiness: float) -> None:
    assert times(burstiness, count=50)[-1] == pytest.approx(5.0)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 16.0])
def test_intervals_vary_as_in_a_gamma_distribution(burstiness: float) -> None:
    """The coefficient of variation of a gamma distribution is 1 / sqrt(shape)."""
    values = intervals(burstiness)
    assert statistics.stdev(values) / statistics.mean(values) == pytest.approx(
        burstiness**-0.5, rel=0.05
    )


def test_intervals_of_a_poisson_process_are_exponential() -> None:
    """Half of the intervals are below mean * ln 2, and 1 in e is above the mean."""
    values = intervals(1.0)
    assert statistics.median(values) == pytest.approx(0.1 * 0.6931, rel=0.05)
    assert sum(value > 0.1 for value in values) / COUNT == pytest.approx(0.3679, abs=0.01)


def test_without_a_rate_all_are_due_at_once() -> None:
    assert times(1.0, count=3, request_rate=float("inf")) == [0.0, 0.0, 0.0]


def test_the_same_seed_gives_the_same_order_of_events() -> None:
    assert times(1.0, seed=5) == times(1.0, seed=5) != times(1.0, seed=6)


def test_no_requests_may_be_sent() -> None:
    assert times(1.0, count=0) == []
