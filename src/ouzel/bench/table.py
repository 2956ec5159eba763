"""Lists the figures of a result, for a terminal and for the report."""

from collections.abc import Iterator
from dataclasses import dataclass

from ouzel.bench.result import Result

_TIMES = (
    ("ttft", "Time to first token"),
    ("tpot", "Time per output token"),
    ("itl", "Time between chunks"),
    ("e2el", "Time of the whole request"),
)
STATISTICS = ("mean", "p50", "p90", "p99")
_VLLM_NAMES = {"p50": "median"}  # the name in results of vLLM that lack the percentile


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in a result, with its label and unit."""

    name: str  # the name of the field in the result
    label: str
    unit: str = ""
    more_is_better: bool | None = None  # None: neither more nor less is better

    @property
    def label_with_unit(self) -> str:
        return f"{self.label} ({self.unit})" if self.unit else self.label


TOTALS = (
    Figure("completed", "Requests completed"),
    Figure("failed", "Requests failed", more_is_better=False),
    Figure("duration", "Duration", "s"),
    Figure("total_input_tokens", "Input tokens"),
    Figure("total_output_tokens", "Output tokens"),
    Figure("request_throughput", "Request throughput", "requests/s", more_is_better=True),
    Figure("request_goodput", "Request goodput", "requests/s", more_is_better=True),
    Figure("output_throughput", "Output throughput", "tokens/s", more_is_better=True),
    Figure("total_token_throughput", "Total throughput", "tokens/s", more_is_better=True),
    # Neither more nor less is better: a single second may be chance.
    Figure("max_output_tokens_per_s", "Most output in a second", "tokens/s"),
    Figure("max_concurrent_requests", "Most requests at once"),
)


def times() -> Iterator[tuple[str, tuple[Figure, ...]]]:
    """Yields the label of each kind of time, and a figure for each of STATISTICS."""
    for name, label in _TIMES:
        figures = (
            Figure(f"{each}_{name}_ms", f"{label}, {each}", "ms", more_is_better=False)
            for each in STATISTICS
        )
        yield label, tuple(figures)


def read_value(result: Result, figure: Figure) -> float | None:
    """Returns the value of a figure; None if the result has no number for it."""
    value = result.get(figure.name)
    if value is None:
        statistic, _, rest = figure.name.partition("_")
        value = result.get(f"{_VLLM_NAMES.get(statistic, statistic)}_{rest}")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def number(value: float | None) -> str:
    """Formats a value with at least three significant digits; whole numbers have all digits."""
    if value is None:
        return "–"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.1:  # a rate of slow requests, or a time between fast chunks
        return f"{value:.3g}"
    digits = 2 if abs(value) >= 10 else 3
    return f"{value:.{digits}f}"
