"""Formats results for a terminal."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ouzel.bench.result import Result
from ouzel.bench.table import STATISTICS, TOTALS, number, read_value, times

_LABEL_COLUMNS = 30
_VALUE_COLUMNS = 11
_NUM_SHOWN_ERRORS = 3
_MAX_ERROR_COLUMNS = 300


def summary(result: Result) -> str:
    return "\n".join([*_totals(result), "", *_times(result), *_errors(result)]) + "\n"


def _totals(result: Result) -> Iterator[str]:
    for figure in TOTALS:
        value = read_value(result, figure)
        if value is not None:
            label = f"{figure.label:{_LABEL_COLUMNS}}"
            yield f"{label}{number(value):>{_VALUE_COLUMNS}} {figure.unit}".rstrip()


def _times(result: Result) -> Iterator[str]:
    yield f"{'Milliseconds':{_LABEL_COLUMNS}}" + "".join(
        f"{each:>{_VALUE_COLUMNS}}" for each in STATISTICS
    )
    for label, figures in times():
        values = (number(read_value(result, figure)) for figure in figures)
        yield f"{label:{_LABEL_COLUMNS}}" + "".join(
            f"{value:>{_VALUE_COLUMNS}}" for value in values
        )


def _errors(result: Result) -> Iterator[str]:
    errors = first_errors(result)
    if errors:
        yield ""
        for error, count in errors:
            yield f"failed {count} times: {printable(error)}"


def first_errors(result: Result) -> list[tuple[str, int]]:
    """Returns the first three different errors, each with its number."""
    counts = Counter(error for error in result.get("errors") or () if error)
    return list(counts.items())[:_NUM_SHOWN_ERRORS]


def printable(text: str) -> str:
    """Replaces control characters, which could move the cursor, and cuts long texts of a server."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown if len(shown) <= _MAX_ERROR_COLUMNS else f"{shown[:_MAX_ERROR_COLUMNS]}…"


def sweep_summary(results: Sequence[Result]) -> str:
    """Returns a table with a line for each run."""

    def limit(result: Result) -> str:
        number_at_once = result["max_concurrency"]
        return "all" if number_at_once is None else str(number_at_once)

    columns: tuple[tuple[str, Callable[[Result], str]], ...] = (
        ("rate", lambda each: str(each["request_rate"])),
        ("at once", limit),
        ("failed", lambda each: str(each["failed"])),
        ("requests/s", lambda each: number(each["request_throughput"])),
        ("tokens/s", lambda each: number(each["output_throughput"])),
        ("TTFT p50", lambda each: number(each["p50_ttft_ms"])),
        ("TTFT p99", lambda each: number(each["p99_ttft_ms"])),
        ("TPOT p50", lambda each: number(each["p50_tpot_ms"])),
        ("E2E p99", lambda each: number(each["p99_e2el_ms"])),
    )
    lines = ["".join(f"{heading:>{_VALUE_COLUMNS}}" for heading, _ in columns)]
    lines += [
        "".join(f"{write(each):>{_VALUE_COLUMNS}}" for _, write in columns) for each in results
    ]
    return "\n".join(lines) + "\n"
