"""Lengths are drawn from the named distribution; a refusal of a length shows the value."""

import random
import statistics

import pytest

from ouzel.bench.lengths import (
    Fixed,
    Lengths,
    LogNormal,
    Normal,
    Uniform,
    draw_length,
    read_lengths,
)


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("128", Fixed(128)),
        ("64:256", Uniform(64, 256)),
        ("uniform(64, 256)", Uniform(64, 256)),
        ("normal(128,32)", Normal(128, 32)),
        ("lognormal(128, 32.5)", LogNormal(128, 32.5)),
    ],
)
def test_every_form_is_read(text: str, lengths: Lengths) -> None:
    assert read_lengths(text) == lengths


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1.5", "256:64", "0:5", "normal(0,1)", "gamma(1,2)", "9999999", "1:2:3"]
)
def test_a_malformed_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be") as refusal:
        read_lengths(text)
    assert repr(text) in str(refusal.value)


def drawn(lengths: Lengths) -> list[int]:
    rng = random.Random(1)
    return [draw_length(lengths, rng) for _ in range(20_000)]


def test_a_fixed_length_is_always_the_same() -> None:
    assert set(drawn(Fixed(7))) == {7}


def test_uniform_lengths_take_both_bounds_and_all_between_as_often() -> None:
    lengths = drawn(Uniform(3, 6))
    shares = [lengths.count(each) / len(lengths) for each in range(3, 7)]
    assert shares == pytest.approx([0.25] * 4, abs=0.02)
    assert set(lengths) == {3, 4, 5, 6}
    assert statistics.mean(lengths) == pytest.approx(4.5, abs=0.05)


@pytest.mark.parametrize("kind", [Normal, LogNormal])
def test_mean_and_deviation_match_the_lengths(kind: type[Normal] | type[LogNormal]) -> None:
    lengths = drawn(kind(200, 50))
    assert statistics.mean(lengths) == pytest.approx(200, rel=0.01)
    assert statistics.stdev(lengths) == pytest.approx(50, rel=0.03)


def test_logarithms_of_lognormal_lengths_lie_evenly_around_their_median() -> None:
    lengths = drawn(LogNormal(200, 100))
    median = 200 / (1 + (100 / 200) ** 2) ** 0.5
    assert statistics.median(lengths) == pytest.approx(median, rel=0.02)


def test_no_length_is_below_one() -> None:
    assert min(drawn(Normal(1, 50))) == 1
