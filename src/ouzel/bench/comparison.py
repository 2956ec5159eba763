"""Two results side by side: what the second has of what the first had."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ouzel.bench.result import InvalidResult, Result
from ouzel.bench.table import TOTALS, Figure, number, times, value_of

_LABEL_COLUMNS = 34
_VALUE_COLUMNS = 13
_NOTABLE = 0.05  # smaller differences come with every repetition


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    figure: Figure
    first: float
    second: float

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
        """Returns `better` or `worse` where the figures differ by more than repetitions do, else nothing."""
        more_is_better = self.figure.more_is_better
        if more_is_better is None or self._is_of_nothing or abs(self.second - self.first) <= _NOTABLE * self.first:
            return ""
        return "better" if (self.second > self.first) == more_is_better else "worse"


def compared(first: Result, second: Result) -> list[ComparedFigure]:
    """Leaves out what only one of them has."""
    figures = [*TOTALS, *(figure for _, row in times() for figure in row)]
    pairs = ((figure, value_of(first, figure), value_of(second, figure)) for figure in figures)
    return [ComparedFigure(figure, a, b) for figure, a, b in pairs if a is not None and b is not None]


def paired(first: Sequence[Result], second: Sequence[Result]) -> list[tuple[Result, Result]]:
    """Pairs the runs of two files, which must be as many. Raises InvalidResult."""
    if len(first) != len(second):
        raise InvalidResult(f"--compare: both files must have as many runs, given {len(first)} and {len(second)}")
    return list(zip(first, second, strict=True))


def comparison_text(first: Result, second: Result) -> str:
    return "\n".join(_lines(compared(first, second))) + "\n"


def _lines(figures: Sequence[ComparedFigure]) -> Iterator[str]:
    yield f"{'':{_LABEL_COLUMNS}}" + "".join(f"{each:>{_VALUE_COLUMNS}}" for each in ("A", "B", "B / A"))
    for each in figures:
        ratio = "–" if each.ratio is None else f"{each.ratio:.3f}"
        values = (number(each.first), number(each.second), ratio)
        columns = "".join(f"{value:>{_VALUE_COLUMNS}}" for value in values)
        yield f"{each.figure.label:{_LABEL_COLUMNS}}{columns} {each.figure.unit:10} {each.verdict}".rstrip()


def load_of(result: Result) -> str:
    """Names the load of a run, for people."""
    rate, limit = result.get("request_rate", "inf"), result.get("max_concurrency")
    parts = [] if rate == "inf" else [f"rate {rate}"]
    parts += [] if limit is None else [f"{limit} at once"]
    return ", ".join(parts) or "all at once"
