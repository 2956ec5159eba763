"""Two results side by side: the figures of the second by the figures of the first, and whether they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.bench.resampling import (
    CONFIDENCE_PERCENT,
    MIN_ROUNDS,
    has_requests,
    ratio_interval,
    resampled_figures,
)
from ouzel.bench.result import InvalidResult, Result
from ouzel.bench.table import TOTALS, Figure, number, times, value_of

_LABEL_COLUMNS = 34
_VALUE_COLUMNS = 13
_NOTABLE = 0.05  # smaller differences come with every repetition
NO_DIFFERENCE = "no difference seen"
TOO_FEW = "too few requests"


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    figure: Figure
    first: float
    second: float
    # of the ratio; None: the runs have too few requests, or tell no times
    interval: tuple[float, float] | None = None
    is_of_few: bool = False  # a run has too few requests for an interval

    @property
    def ratio(self) -> float | None:
        """The second by the first; None where the first is 0, or nothing was timed."""
        return self.second / self.first if self.first and not self._is_of_nothing else None

    @property
    def _is_of_nothing(self) -> bool:
        """Times of 0 are those of runs without an answer, or without a second token."""
        return self.figure.unit == "ms" and not (self.first and self.second)

    @property
    def verdict(self) -> str:
        """Returns `better` or `worse` if the figures differ by more than repetitions do, else `no difference seen`.

        It is empty for figures of which neither more nor less is better, and for small differences without an interval.
        Of runs that are too short for an interval, a difference says nothing.
        """
        more_is_better = self.figure.more_is_better
        if more_is_better is None or self._is_of_nothing:
            return ""
        is_notable = abs(self.second - self.first) > _NOTABLE * self.first
        if self.interval is not None and self.interval[0] <= 1 <= self.interval[1]:
            is_notable = False
        if not is_notable:
            return NO_DIFFERENCE if self.is_of_few or self.interval is not None else ""
        if self.is_of_few:
            return TOO_FEW
        return "better" if (self.second > self.first) == more_is_better else "worse"


def compared(first: Result, second: Result) -> list[ComparedFigure]:
    """Leaves out figures that only one of the results has."""
    resamples = resampled_figures(first), resampled_figures(second)
    has_times = has_requests(first) and has_requests(second)
    found = []
    for figure in [*TOTALS, *(figure for _, row in times() for figure in row)]:
        a, b = value_of(first, figure), value_of(second, figure)
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


def paired(first: Sequence[Result], second: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Pairs the runs of two files, which must be as many. Raises InvalidResult."""
    if len(first) != len(second):
        raise InvalidResult(
            f"--compare: both files must have as many runs, given {len(first)} and {len(second)}"
        )
    return list(zip(first, second, strict=True))


def comparison_text(first: Result, second: Result) -> str:
    return "\n".join(_lines(compared(first, second))) + "\n"


def _lines(figures: Sequence[ComparedFigure]) -> Iterator[str]:
    has_intervals = any(each.interval is not None for each in figures)
    heads = ("A", "B", "B / A", f"{CONFIDENCE_PERCENT} %") if has_intervals else ("A", "B", "B / A")
    yield f"{'':{_LABEL_COLUMNS}}" + "".join(f"{each:>{_VALUE_COLUMNS}}" for each in heads)
    for each in figures:
        ratio = "–" if each.ratio is None else f"{each.ratio:.3f}"
        values = [number(each.first), number(each.second), ratio]
        if has_intervals:
            values.append(
                "" if each.interval is None else f"{each.interval[0]:.2f}–{each.interval[1]:.2f}"
            )
        columns = "".join(f"{value:>{_VALUE_COLUMNS}}" for value in values)
        yield f"{each.figure.label:{_LABEL_COLUMNS}}{columns} {each.figure.unit:10} {each.verdict}".rstrip()
    if any(each.is_of_few for each in figures):
        yield (
            "\nThe runs are too short to tell a difference from chance: requests that run at the same time are slow "
            f"or fast together.\nSend {MIN_ROUNDS} times as many as run at a time (--num-prompts, --max-concurrency)."
        )


def load_of(result: Result) -> str:
    """Names the load of a run, for people."""
    rate, limit = result.get("request_rate", "inf"), result.get("max_concurrency")
    parts = [] if rate == "inf" else [f"rate {rate}"]
    parts += [] if limit is None else [f"{limit} at once"]
    return ", ".join(parts) or "all at once"
