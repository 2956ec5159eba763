"""Compares two results: the ratios of figures, and whether differences are more than chance."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.bench.resampling import (
    CONFIDENCE_PERCENT,
    MIN_ROUNDS,
    has_requests,
    ratio_interval,
    resample_figures,
)
from ouzel.bench.result import InvalidResult, Result
from ouzel.bench.table import TOTALS, Figure, number, read_value, times

_LABEL_COLUMNS = 34
_VALUE_COLUMNS = 13
_NOTABLE = 0.05  # relative difference; repetitions of one run differ by up to as much
NO_DIFFERENCE = "no difference seen"
TOO_FEW = "too few requests"


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    figure: Figure
    first: float
    second: float
    # Confidence interval of the ratio; None if a run has too few requests or no times.
    interval: tuple[float, float] | None = None
    is_of_few: bool = False  # a run has too few requests for an interval

    @property
    def ratio(self) -> float | None:
        """Returns the second value divided by the first; None if the first is 0 or no time."""
        return self.second / self.first if self.first and not self._lacks_times else None

    @property
    def _lacks_times(self) -> bool:
        """Tells whether a time is 0, because a run has no answer, or no second token."""
        return self.figure.unit == "ms" and not (self.first and self.second)

    @property
    def verdict(self) -> str:
        """Returns `better` or `worse` for a difference that is more than chance.

        Returns `no difference seen` for a smaller difference, and `too few requests` for runs too
        short to tell. Returns "" for a figure that is neither good nor bad, and for a small
        difference without an interval.
        """
        more_is_better = self.figure.more_is_better
        if more_is_better is None or self._lacks_times:
            return ""
        is_notable = abs(self.second - self.first) > _NOTABLE * self.first
        if self.interval is not None and self.interval[0] <= 1 <= self.interval[1]:
            is_notable = False
        if not is_notable:
            return NO_DIFFERENCE if self.is_of_few or self.interval is not None else ""
        if self.is_of_few:
            return TOO_FEW
        return "better" if (self.second > self.first) == more_is_better else "worse"


def compare(first: Result, second: Result) -> list[ComparedFigure]:
    """Compares the figures that both results have."""
    resamples = resample_figures(first), resample_figures(second)
    has_times = has_requests(first) and has_requests(second)
    found = []
    for figure in [*TOTALS, *(figure for _, row in times() for figure in row)]:
        a, b = read_value(first, figure), read_value(second, figure)
        if a is None or b is None:
            continue
        of_a, of_b = (each.get(figure.name) for each in resamples)
        interval = None if of_a is None or of_b is None else ratio_interval(of_a, of_b)
        is_of_few = (
            has_times
            and not all(resamples)
            and figure.more_is_better is not None
            and figure.name != "failed"
        )
        found.append(ComparedFigure(figure, a, b, interval, is_of_few))
    return found


def pair_runs(first: Sequence[Result], second: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Pairs the runs of two files. Raises InvalidResult if the numbers of runs differ."""
    if len(first) != len(second):
        raise InvalidResult(
            f"--compare: both files must have the same number of runs, given {len(first)} and "
            f"{len(second)}"
        )
    return list(zip(first, second, strict=True))


def comparison_text(first: Result, second: Result) -> str:
    return "\n".join(_lines(compare(first, second))) + "\n"


def _lines(figures: Sequence[ComparedFigure]) -> Iterator[str]:
    has_intervals = any(each.interval is not None for each in figures)
    heads = ("A", "B", "B / A", f"{CONFIDENCE_PERCENT} %") if has_intervals else ("A", "B", "B / A")
    yield f"{'':{_LABEL_COLUMNS}}" + "".join(f"{each:>{_VALUE_COLUMNS}}" for each in heads)
    for each in figures:
        ratio = "–" if each.ratio is None else f"{each.ratio:.3f}"
        values = [number(each.first), number(each.second), ratio]
        if has_intervals:
            interval = each.interval
            values.append("" if interval is None else f"{interval[0]:.2f}–{interval[1]:.2f}")
        columns = "".join(f"{value:>{_VALUE_COLUMNS}}" for value in values)
        label = f"{each.figure.label:{_LABEL_COLUMNS}}"
        yield f"{label}{columns} {each.figure.unit:10} {each.verdict}".rstrip()
    if any(each.is_of_few for each in figures):
        yield (
            "\nThe runs are too short to tell a difference from chance: requests that run at the "
            f"same time are slow or fast together.\nSend {MIN_ROUNDS} times as many requests as "
            "run at a time (--num-prompts, --max-concurrency)."
        )


def describe_load(result: Result) -> str:
    """Describes the load of a run in words."""
    rate, limit = result.get("request_rate", "inf"), result.get("max_concurrency")
    parts = [] if rate == "inf" else [f"rate {rate}"]
    parts += [] if limit is None else [f"{limit} at once"]
    return ", ".join(parts) or "all at once"
