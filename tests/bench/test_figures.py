"""Compares figures of short traces with figures computed by hand."""

import pytest

from ouzel.bench.figures import Outputs, compute_figures, tokens_over_time
from ouzel.bench.goodput import Limits, read_limits
from tests.bench.measurements import measurement

# Two answers of 3 and 5 tokens and a failed request; the second answer has three chunks.
FIRST = measurement(100.0, (0.1, 0.2, 0.4), output_len=3, input_len=10)
SECOND = measurement(100.5, (0.5, 1.0, 2.5), output_len=5, input_len=30)
FAILED = measurement(101.0, (0.1,), output_len=9, input_len=99, error="500: no")
FIGURES = compute_figures([FIRST, SECOND, FAILED], duration_s=4.0)


def test_totals_count_completed_requests() -> None:
    assert (FIGURES.num_completed, FIGURES.num_failed) == (2, 1)
    assert (FIGURES.total_input, FIGURES.total_output) == (40, 8)


def test_throughputs_are_by_the_second_of_the_whole_run() -> None:
    assert (
        FIGURES.request_throughput,
        FIGURES.output_throughput,
        FIGURES.total_token_throughput,
    ) == (0.5, 2.0, 12.0)


def test_times_to_the_first_token_are_over_requests() -> None:
    assert (FIGURES.ttft.mean, FIGURES.ttft.median, FIGURES.ttft.std) == pytest.approx(
        (300.0, 300.0, 200.0)
    )
    # interpolated between the two values
    assert FIGURES.ttft.percentiles == pytest.approx((300.0, 460.0, 480.0, 496.0))


def test_times_per_output_token_leave_the_first_out() -> None:
    """The times are (0.4 - 0.1) / 2 and (2.5 - 0.5) / 4 seconds."""
    assert (FIGURES.tpot.mean, FIGURES.tpot.percentile(50)) == pytest.approx((325.0, 325.0))


def test_times_between_chunks_are_over_chunks_however_many_tokens_they_hold() -> None:
    assert FIGURES.itl.mean == pytest.approx((100 + 200 + 500 + 1500) / 4)
    assert FIGURES.itl.median == pytest.approx(350.0)


def test_times_of_whole_requests() -> None:
    assert FIGURES.e2el.mean == pytest.approx(1450.0)


def test_an_answer_of_one_token_has_no_time_per_output_token() -> None:
    figures = compute_figures([measurement(0.0, (0.1,), output_len=1)], duration_s=1.0)
    assert (figures.tpot.mean, figures.itl.mean, figures.ttft.mean) == pytest.approx(
        (0.0, 0.0, 100.0)
    )


def test_goodput_counts_requests_within_all_limits() -> None:
    def goodput(**limits: float) -> float | None:
        return compute_figures([FIRST, SECOND, FAILED], 4.0, Limits(**limits)).request_goodput

    assert goodput(ttft=100.0) == 0.25
    assert goodput(ttft=500.0, tpot=200.0) == 0.25
    assert goodput(ttft=500.0, tpot=500.0, e2el=2500.0) == 0.5
    assert goodput(e2el=1.0) == 0.0
    assert FIGURES.request_goodput is None


def test_most_requests_at_once() -> None:
    overlapping = [measurement(start_s, (1.0,), output_len=1) for start_s in (0.0, 0.5, 0.9, 1.2)]
    following = [measurement(start_s, (1.0,), output_len=1) for start_s in (0.0, 1.0, 2.0)]
    assert compute_figures(overlapping, 3.0).max_concurrent_requests == 3
    assert compute_figures(following, 3.0).max_concurrent_requests == 1


def test_most_output_in_a_second() -> None:
    """The chunks of SECOND, with five tokens, come 1.0, 1.5 and 3.0 seconds after the start."""
    assert FIGURES.max_output_tokens_per_s == pytest.approx(2 * 5 / 3, abs=1e-5)
    outputs = Outputs(
        start_times_s=[0.0, 0.5], ttfts_s=[0.1, 0.5], itls_s=[[0.1], []], output_lens=[4, 1]
    )
    assert tokens_over_time(outputs, bin_s=0.5) == [4.0, 0.0, 1.0]


def test_nothing_has_figures_of_nothing() -> None:
    figures = compute_figures([], duration_s=0.0, limits=Limits(ttft=1.0))
    assert (
        figures.num_completed,
        figures.output_throughput,
        figures.request_goodput,
        figures.ttft.mean,
    ) == (
        0,
        0,
        0,
        0,
    )


def test_limits_are_read_and_refused() -> None:
    assert read_limits(["ttft:500", "e2el:1e4"]) == Limits(ttft=500.0, e2el=10_000.0)
    assert read_limits([]) is None
    for pair in ("ttft", "ttft:", "itl:5", "tpot:-1", "tpot:inf", "tpot:nan"):
        with pytest.raises(ValueError, match="ttft:MS, tpot:MS and e2el:MS") as refusal:
            read_limits([pair])
        assert repr(pair) in str(refusal.value)
    with pytest.raises(ValueError, match="each once"):
        read_limits(["ttft:1", "ttft:2"])
