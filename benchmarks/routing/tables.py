"""Writes outcomes as the cells of a table in Markdown."""

from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.routing.simulation import Outcome

_NEAR = 1.1  # times the best: as good, for the few seeds that there are


def policy_table(rows: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> str:
    """Returns a row per policy and a column per workload: medians of all seeds, and the extremes.

    A time is bold if it is within a tenth of the shortest time of a policy that does not know the
    caches.
    """
    columns = list(next(iter(rows.values())))
    best = {
        column: min(_p99(of[column]) for policy, of in rows.items() if "precise" not in policy)
        for column in columns
    }
    lines = ["| policy | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for policy, of in rows.items():
        cells = (
            _cell(of[column], is_best=_p99(of[column]) <= _NEAR * best[column])
            for column in columns
        )
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _p99(outcomes: Sequence[Outcome]) -> float:
    return median(outcome.first_token_p99_s for outcome in outcomes)


def _cell(outcomes: Sequence[Outcome], *, is_best: bool) -> str:
    times = sorted(outcome.first_token_p99_s for outcome in outcomes)
    p99 = f"{_seconds(median(times))} s"
    spread = f" ({_seconds(times[0])} to {_seconds(times[-1])})" if len(times) > 1 else ""
    hits = f"{100 * median(outcome.hit_rate for outcome in outcomes):.0f} %"
    return f"{hits}, {f'**{p99}**' if is_best else p99}{spread}"


def _seconds(time_s: float) -> str:
    return f"{time_s:.2f}" if time_s < 10 else f"{time_s:.0f}"
