"""Computes confidence intervals of the figures of a run by a bootstrap over rounds of requests.

Requests that run at the same time share the steps of the engine, so their times are not
independent. The bootstrap therefore draws whole rounds. A round has as many consecutive requests,
in the order of their starts, as ran at the same time.
"""

from dataclasses import dataclass
from typing import Any  # JSON

import numpy as np
from numpy.typing import NDArray

from ouzel.bench.result import Result

MIN_ROUNDS = 5  # fewer rounds do not show how rounds differ
CONFIDENCE_PERCENT = 95
_NUM_RESAMPLES = 400
_MIN_RESAMPLES = 100  # a run with very many times gets fewer resamples, but at least these
_MAX_TIMES = 40_000_000  # times between chunks in all resamples together
_SEED = 20_260
_PERCENTILES = (50, 90, 99)

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Requests:
    """The answered requests by their starts; index i of each array belongs to request i."""

    input_lens: Array
    output_lens: Array
    ttfts_s: Array
    e2els_s: Array
    itls_s: list[Array]

    def __len__(self) -> int:
        return len(self.ttfts_s)


def resample_figures(result: Result) -> dict[str, Array]:
    """Returns a dict from the name of a figure to its values in the resamples.

    The dict is empty if the result has no times of single requests, or too few rounds.
    """
    requests = _requests(result)
    size = max(1, int(result.get("max_concurrent_requests") or len(requests)))
    num_rounds = len(requests) // size
    if num_rounds < MIN_ROUNDS:
        return {}
    rounds = np.arange(num_rounds * size).reshape(num_rounds, size)
    num_times = sum(map(len, requests.itls_s))
    num_resamples = min(_NUM_RESAMPLES, max(_MIN_RESAMPLES, _MAX_TIMES // max(num_times, 1)))
    drawn = np.random.default_rng(_SEED).integers(num_rounds, size=(num_resamples, num_rounds))
    whole = _throughputs(requests, rounds.ravel())
    values: dict[str, list[float]] = {}
    for row in drawn:
        chosen = rounds[row].ravel()
        for name, rate in _throughputs(requests, chosen).items():
            if whole[name]:
                # The figure of the run, scaled by the relative speed of the resample.
                figure = float(result.get(name) or 0.0) * rate / whole[name]
                values.setdefault(name, []).append(figure)
        for name, value in _times(requests, chosen).items():
            values.setdefault(name, []).append(value)
    return {name: np.array(each) for name, each in values.items()}


def ratio_interval(first: Array, second: Array) -> tuple[float, float]:
    """Returns the confidence interval of the second figure divided by the first.

    The resamples of the two figures are paired at random, because they are independent.
    """
    num_pairs = min(len(first), len(second))
    shuffled = np.random.default_rng(_SEED).permutation(first)[:num_pairs]
    second = second[:num_pairs]
    rest = (100 - CONFIDENCE_PERCENT) / 2
    ratios = second[shuffled > 0] / shuffled[shuffled > 0]
    low, high = np.percentile(ratios, (rest, 100 - rest)) if len(ratios) else (0.0, float("inf"))
    return float(low), float(high)


def has_requests(result: Result) -> bool:
    """Tells whether the result has the times of single requests."""
    return len(_requests(result)) > 0


def _requests(result: Result) -> _Requests:
    names = ("start_times", "ttfts", "itls", "input_lens", "output_lens", "errors")
    columns = [result.get(name) for name in names]
    rows: list[tuple[Any, ...]] = []
    if all(isinstance(column, list) for column in columns):
        rows = list(zip(*columns, strict=False))
    answered = sorted((row for row in rows if not row[5] and row[4]), key=lambda row: row[0])
    itls_s = [np.asarray(row[2], dtype=np.float64) for row in answered]
    ttfts_s = np.array([row[1] for row in answered], dtype=np.float64)
    return _Requests(
        input_lens=np.array([row[3] for row in answered], dtype=np.float64),
        output_lens=np.array([row[4] for row in answered], dtype=np.float64),
        ttfts_s=ttfts_s,
        e2els_s=ttfts_s + np.array([itls.sum() for itls in itls_s], dtype=np.float64),
        itls_s=itls_s,
    )


def _times(requests: _Requests, chosen: NDArray[np.int64]) -> dict[str, float]:
    """Returns the means and percentiles of the times of the chosen requests, in milliseconds."""
    ttfts_s = requests.ttfts_s[chosen]
    e2els_s = requests.e2els_s[chosen]
    lens = requests.output_lens[chosen]
    several = lens > 1
    times = {
        "ttft": ttfts_s,
        "tpot": (e2els_s - ttfts_s)[several] / (lens[several] - 1),
        "itl": np.concatenate([requests.itls_s[place] for place in chosen]),
        "e2el": e2els_s,
    }
    figures = {}
    for name, seconds in times.items():
        if len(seconds):
            figures[f"mean_{name}_ms"] = 1000 * float(seconds.mean())
            values = np.percentile(seconds, _PERCENTILES)
            for percent, value in zip(_PERCENTILES, values, strict=True):
                figures[f"p{percent}_{name}_ms"] = 1000 * float(value)
    return figures


def _throughputs(requests: _Requests, chosen: NDArray[np.int64]) -> dict[str, float]:
    """Returns the throughputs per second of the summed times of the chosen requests."""
    seconds = float(requests.e2els_s[chosen].sum()) or 1e-9
    output = float(requests.output_lens[chosen].sum())
    return {
        "request_throughput": len(chosen) / seconds,
        "output_throughput": output / seconds,
        "total_token_throughput": (output + float(requests.input_lens[chosen].sum())) / seconds,
    }
