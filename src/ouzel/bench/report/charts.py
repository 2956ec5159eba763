"""Makes the charts of results."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ouzel.bench.figures import Outputs, tokens_over_time
from ouzel.bench.report.chart import MAX_SERIES, Chart, Mark, Series
from ouzel.bench.result import Result
from ouzel.bench.table import Figure, read_value

_NUM_QUANTILES = 200
_NUM_BINS = 50
_MAX_RUNS = MAX_SERIES - 1  # failures have one of the colours
_BINS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0)


@dataclass(frozen=True, slots=True)
class NamedResult:
    name: str
    result: Result


@dataclass(frozen=True, slots=True)
class _Requests:
    """The times of the answered requests of a result, and the start times of failed ones.

    A result of vLLM has these times only if it was saved with all details.
    """

    outputs: Outputs
    e2els_s: Sequence[float]
    failure_times_s: Sequence[float]


def select_runs(named: Sequence[NamedResult]) -> Sequence[NamedResult]:
    """Selects every second or third run, and so on, if there are more runs than colours."""
    return named[:: (len(named) - 1) // _MAX_RUNS + 1] if named else named


def make_charts(named: Sequence[NamedResult]) -> list[Chart]:
    """Makes charts with all runs in each chart; charts without data are left out."""
    detailed = [
        (each.name, _requests(each.result))
        for each in select_runs(named)
        if _has_details(each.result)
    ]
    made = (
        Chart(
            title="Time to first token",
            x_label="milliseconds",
            y_label="% of requests",
            series=tuple(
                _cumulative(name, requests.outputs.ttfts_s) for name, requests in detailed
            ),
            mark=Mark.LINE,
            may_be_logarithmic=True,
        ),
        Chart(
            title="Time between chunks",
            x_label="milliseconds",
            y_label="% of chunks",
            series=tuple(
                _cumulative(name, list(itertools.chain(*requests.outputs.itls_s)))
                for name, requests in detailed
            ),
            mark=Mark.LINE,
            may_be_logarithmic=True,
        ),
        Chart(
            title="Whole requests",
            x_label="start of the request, seconds from the beginning",
            y_label="seconds",
            series=_whole_requests(detailed),
            mark=Mark.DOTS,
        ),
        Chart(
            title="Output over time",
            x_label="seconds from the beginning",
            y_label="tokens/s",
            series=tuple(_throughput(name, requests.outputs) for name, requests in detailed),
            mark=Mark.STEPS,
        ),
    )
    return [chart for chart in made if any(len(series.xs) for series in chart.series)]


def make_sweep_charts(sweeps: Sequence[tuple[str, Sequence[Result]]]) -> list[Chart]:
    """Makes charts of figures against the load, for one sweep or for two compared sweeps."""
    key, label = _choose_axis(sweeps[0][1])
    in_order = [
        (sweep, sorted(results, key=lambda each: float(each[key]))) for sweep, results in sweeps
    ]

    def lines(name: str, values: Callable[[Result], float]) -> tuple[Series, ...]:
        return tuple(
            Series(
                f"{sweep} {name}".strip(),
                [float(each[key]) for each in results],
                [values(each) for each in results],
            )
            for sweep, results in in_order
        )

    def figure(name: str) -> Callable[[Result], float]:
        return lambda result: read_value(result, Figure(name, name)) or 0.0

    return [
        Chart(
            "Output throughput",
            label,
            "tokens/s",
            lines("", figure("output_throughput")),
            Mark.POINTS,
        ),
        Chart(
            "Request throughput",
            label,
            "requests/s",
            lines("", figure("request_throughput")),
            Mark.POINTS,
        ),
        *(
            Chart(
                title,
                label,
                "milliseconds",
                lines("p50", figure(f"p50_{time}_ms")) + lines("p99", figure(f"p99_{time}_ms")),
                Mark.POINTS,
            )
            for time, title in (("ttft", "Time to first token"), ("tpot", "Time per output token"))
        ),
    ]


def is_sweep(results: Sequence[Result]) -> bool:
    """Tells whether several runs have numeric loads, so that figures can be drawn against them."""
    if len(results) < 2:
        return False
    key, _ = _choose_axis(results)
    return all(isinstance(each.get(key), int | float) for each in results)


def have_one_axis(first: Sequence[Result], second: Sequence[Result]) -> bool:
    """Tells whether both are sweeps over the same kind of load."""
    return is_sweep(first) and is_sweep(second) and _choose_axis(first) == _choose_axis(second)


def _choose_axis(results: Sequence[Result]) -> tuple[str, str]:
    """Returns the field of the load that differs between the runs, and the label of the axis."""
    rates = {str(each.get("request_rate")) for each in results}
    if len(rates) > 1:
        return "request_rate", "requests sent per second"
    return "max_concurrency", "requests at once"


def _has_details(result: Result) -> bool:
    names = ("start_times", "ttfts", "itls", "output_lens", "errors")
    columns = [result.get(name) for name in names]
    if not all(isinstance(each, list | tuple) for each in columns):
        return False
    return len({len(each or ()) for each in columns}) == 1


def _requests(result: Result) -> _Requests:
    """Reads the requests of a result; times become relative to the first request."""
    begin_s = min(result["start_times"], default=0.0)
    starts_s = [start_s - begin_s for start_s in result["start_times"]]
    columns = (result[name] for name in ("ttfts", "itls", "output_lens", "errors"))
    rows = list(zip(starts_s, *columns, strict=True))
    answered = [row for row in rows if not row[4]]
    return _Requests(
        outputs=Outputs(
            start_times_s=[row[0] for row in answered],
            ttfts_s=[row[1] for row in answered],
            itls_s=[row[2] for row in answered],
            output_lens=[row[3] for row in answered],
        ),
        e2els_s=[row[1] + sum(row[2]) for row in answered],
        failure_times_s=[row[0] for row in rows if row[4]],
    )


def _whole_requests(detailed: Sequence[tuple[str, _Requests]]) -> tuple[Series, ...]:
    """Makes the series of the times of whole requests; failed requests of all runs are at 0."""
    series = [
        Series(name, requests.outputs.start_times_s, requests.e2els_s)
        for name, requests in detailed
    ]
    failures_s = [time_s for _, requests in detailed for time_s in requests.failure_times_s]
    if failures_s:
        series.append(Series("failed", failures_s, [0.0] * len(failures_s)))
    return tuple(series)


def _cumulative(name: str, times_s: Sequence[float]) -> Series:
    """Makes the cumulative distribution: x is a time in ms, y the percentage of times up to x."""
    if not len(times_s):
        return Series(name, [], [])
    shares = np.linspace(0, 100, min(_NUM_QUANTILES, len(times_s)) + 1)
    return Series(name, (np.percentile(times_s, shares) * 1000).tolist(), shares.tolist())


def _throughput(name: str, outputs: Outputs) -> Series:
    ends_s = [
        start + ttft + sum(itls)
        for start, ttft, itls in zip(
            outputs.start_times_s, outputs.ttfts_s, outputs.itls_s, strict=True
        )
    ]
    duration_s = max(ends_s, default=0.0)
    bin_s = next((each for each in _BINS_S if each * _NUM_BINS >= duration_s), _BINS_S[-1])
    counts = tokens_over_time(outputs, bin_s=bin_s)
    xs = [number * bin_s for number in range(len(counts) + 1)]
    return Series(name, xs, [*(count / bin_s for count in counts), 0.0])
