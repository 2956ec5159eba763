"""Computes the figures of a run, by the definitions of `vllm bench serve`."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ouzel.bench.goodput import Limits
from ouzel.bench.measurement import Measurement

PERCENTILES = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a time in milliseconds; all values are 0 without data."""

    mean: float
    median: float
    std: float
    percentiles: tuple[float, ...]  # one for each of PERCENTILES, interpolated linearly

    def percentile(self, percent: int) -> float:
        return self.percentiles[PERCENTILES.index(percent)]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run; throughputs are per second of `duration_s`.

    The duration is the time from the first request to the end of the last answer.
    """

    duration_s: float
    num_completed: int
    num_failed: int
    total_input: int
    total_output: int
    request_throughput: float
    request_goodput: float | None  # None without --goodput
    output_throughput: float
    total_token_throughput: float
    max_output_tokens_per_s: float  # most tokens in any whole second since the start of the run
    max_concurrent_requests: int
    ttft: Spread
    tpot: Spread  # only requests with at least two tokens
    itl: Spread
    e2el: Spread


def compute_figures(
    measurements: Sequence[Measurement], duration_s: float, limits: Limits | None = None
) -> Figures:
    completed = [each for each in measurements if each.is_complete]
    total_input = sum(each.input_len for each in completed)
    total_output = sum(each.output_len for each in completed)
    per_second = 1 / duration_s if duration_s > 0 else 0.0
    return Figures(
        duration_s=duration_s,
        num_completed=len(completed),
        num_failed=len(measurements) - len(completed),
        total_input=total_input,
        total_output=total_output,
        request_throughput=len(completed) * per_second,
        request_goodput=None if limits is None else _num_good(completed, limits) * per_second,
        output_throughput=total_output * per_second,
        total_token_throughput=(total_input + total_output) * per_second,
        max_output_tokens_per_s=max(_tokens_by_second(completed), default=0.0),
        max_concurrent_requests=_most_at_once(completed),
        ttft=_spread([each.ttft_s for each in completed]),
        tpot=_spread([each.tpot_s for each in completed if each.output_len > 1]),
        itl=_spread([itl_s for each in completed for itl_s in each.itls_s]),
        e2el=_spread([each.e2el_s for each in completed]),
    )


def _num_good(completed: Sequence[Measurement], limits: Limits) -> int:
    """Counts the requests within the limits; an answer of one token meets any limit of TPOT."""
    return sum(
        limits.are_kept(ttft_s=each.ttft_s, tpot_s=each.tpot_s, e2el_s=each.e2el_s)
        for each in completed
    )


def _spread(times_s: Sequence[float]) -> Spread:
    if not times_s:
        return Spread(0.0, 0.0, 0.0, (0.0,) * len(PERCENTILES))
    times_ms = np.asarray(times_s) * 1000
    percentiles = tuple(float(value) for value in np.percentile(times_ms, PERCENTILES))
    return Spread(
        float(times_ms.mean()), float(np.median(times_ms)), float(times_ms.std()), percentiles
    )


@dataclass(frozen=True, slots=True)
class Outputs:
    """The times of the outputs of answers; index i of each sequence belongs to answer i."""

    start_times_s: Sequence[float]
    ttfts_s: Sequence[float]
    itls_s: Sequence[Sequence[float]]
    output_lens: Sequence[int]


def tokens_over_time(outputs: Outputs, *, bin_s: float) -> list[float]:
    """Returns the number of tokens in each interval of `bin_s` seconds since time 0.

    The tokens of an answer are spread evenly over its chunks.
    """
    times_s: list[float] = []
    weights: list[float] = []
    rows = zip(
        outputs.start_times_s, outputs.ttfts_s, outputs.itls_s, outputs.output_lens, strict=True
    )
    for start_s, ttft_s, itls_s, output_len in rows:
        chunk_times_s = start_s + ttft_s + np.concatenate(([0.0], np.cumsum(itls_s)))
        times_s += chunk_times_s.tolist()
        weights += [output_len / len(chunk_times_s)] * len(chunk_times_s)
    if not times_s:
        return []
    bins = (np.asarray(times_s) / bin_s).astype(int)
    return [round(float(count), 6) for count in np.bincount(bins, weights=weights)]


def _tokens_by_second(completed: Sequence[Measurement]) -> list[float]:
    begin_s = min((each.start_s for each in completed), default=0.0)
    outputs = Outputs(
        start_times_s=[each.start_s - begin_s for each in completed],
        ttfts_s=[each.ttft_s for each in completed],
        itls_s=[each.itls_s for each in completed],
        output_lens=[each.output_len for each in completed],
    )
    return tokens_over_time(outputs, bin_s=1.0)


def _most_at_once(completed: Sequence[Measurement]) -> int:
    """Returns the most requests that ran at the same time.

    vLLM instead counts the requests that ran within one second, which are more for short requests.
    """
    changes = [(each.start_s, 1) for each in completed] + [(each.end_s, -1) for each in completed]
    return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)
