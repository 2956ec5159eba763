"""Confidence intervals tell differences between results from chance."""

from typing import Any  # the JSON of a result

import numpy as np

from ouzel.bench.comparison import ComparedFigure, compare, comparison_text
from ouzel.bench.resampling import resample_figures


def run(
    *, num_requests: int, at_once: int, seed: int, slowness: float = 1.0, noise: float = 0.2
) -> dict[str, Any]:
    """Returns a result; its requests run in rounds, and a round is slow or fast as a whole."""
    random = np.random.default_rng(seed)
    result: dict[str, Any] = {
        name: [] for name in ("start_times", "ttfts", "itls", "input_lens", "output_lens")
    }
    clock_s = 0.0
    for _ in range(num_requests // at_once):
        pace = slowness * (1 + noise * random.random())
        for _ in range(at_once):
            result["start_times"].append(clock_s)
            result["ttfts"].append(0.1 * pace)
            result["itls"].append([0.01 * pace] * 9)
            result["input_lens"].append(8)
            result["output_lens"].append(10)
        clock_s += 0.19 * pace
    times = np.array(result["ttfts"]) * 1000
    totals = {
        "request_throughput": num_requests / clock_s,
        "p50_ttft_ms": float(np.median(times)),
        "failed": 0,
    }
    return result | totals | {"errors": [""] * num_requests, "max_concurrent_requests": at_once}


def verdicts(first: dict[str, Any], second: dict[str, Any]) -> dict[str, ComparedFigure]:
    return {each.figure.name: each for each in compare(first, second)}


def test_eight_requests_at_once_are_too_few_to_tell() -> None:
    first = run(num_requests=8, at_once=8, seed=1, noise=0)
    second = run(num_requests=8, at_once=8, seed=2, slowness=1 / 0.773, noise=0)

    found = verdicts(first, second)

    assert {found[name].verdict for name in ("request_throughput", "p50_ttft_ms")} == {
        "too few requests"
    }
    assert found["p50_ttft_ms"].interval is None
    assert "too short to tell a difference" in comparison_text(first, second)
    assert verdicts(first, first)["p50_ttft_ms"].verdict == "no difference seen"


def test_many_rounds_show_a_difference_to_a_slower_server_only() -> None:
    first = run(num_requests=80, at_once=4, seed=1)
    same = run(num_requests=80, at_once=4, seed=2)
    slower = run(num_requests=80, at_once=4, seed=3, slowness=1.3)

    equal, different = verdicts(first, same), verdicts(first, slower)

    assert {equal[name].verdict for name in ("request_throughput", "p50_ttft_ms")} == {
        "no difference seen"
    }
    assert {different[name].verdict for name in ("request_throughput", "p50_ttft_ms")} == {"worse"}
    interval = different["p50_ttft_ms"].interval
    assert interval is not None
    assert 1 < interval[0] < 1.3 < interval[1] < 1.6
    assert "95 %" in comparison_text(first, slower)


def test_intervals_are_the_same_every_time() -> None:
    result = run(num_requests=40, at_once=2, seed=1)

    first, again = resample_figures(result), resample_figures(result)

    assert {name: values.tolist() for name, values in first.items()} == {
        name: values.tolist() for name, values in again.items()
    }


def test_failed_requests_have_no_times() -> None:
    result = run(num_requests=40, at_once=2, seed=1)
    result["errors"][0], result["ttfts"][0] = "refused", 1e9

    assert resample_figures(result)["mean_ttft_ms"].max() < 1000


def test_a_run_with_many_times_is_resampled_less_often_and_compared_all_the_same() -> None:
    short, long = run(num_requests=40, at_once=2, seed=1), run(num_requests=40, at_once=2, seed=2)
    long["itls"] = [[0.01] * 4000 for _ in long["itls"]]

    assert len(resample_figures(short)["mean_ttft_ms"]) == 400
    assert 100 <= len(resample_figures(long)["mean_ttft_ms"]) < 400
    assert verdicts(long, short)["p50_ttft_ms"].verdict == "no difference seen"
    assert verdicts(short, long)["p50_ttft_ms"].verdict == "no difference seen"


def test_figures_that_few_requests_have_are_compared() -> None:
    """Some resamples lack answers of several tokens, and so have no time per token."""
    first, second = (
        run(num_requests=40, at_once=2, seed=seed) | {"p50_tpot_ms": 10.0} for seed in (1, 2)
    )
    first["output_lens"] = [10] + [1] * 39

    assert len(resample_figures(first)["p50_tpot_ms"]) < 400
    assert verdicts(first, second)["p50_tpot_ms"].interval is not None
    assert verdicts(second, first)["p50_tpot_ms"].interval is not None
