"""Medians, ratios and spreads of contenders that take turns, round after round."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.comparison.product import Turn


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the extremes of a few figures."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> "Spread":
        return cls(median(figures), min(figures), max(figures))


@dataclass(frozen=True, slots=True)
class Cell:
    """The figures of one contender at one workload."""

    rate: Spread  # tokens a second
    # Ouzel's rate over this rate within each round (above 1: Ouzel is faster); None without Ouzel
    ratio: Spread | None
    # tokens per step of one sequence; None if the workload does not count steps
    tokens_per_step: float | None = None

    def json(self) -> dict[str, object]:
        found: dict[str, object] = {"rate": _round_spread(self.rate, 2)}
        if self.ratio is not None:
            found["ratio"] = _round_spread(self.ratio, 3)
        if self.tokens_per_step is not None:
            found["tokens_per_step"] = round(self.tokens_per_step, 2)
        return found


def _round_spread(spread: Spread, digits: int) -> list[float]:
    return [round(each, digits) for each in (spread.median, spread.low, spread.high)]


def cells(
    turns: Mapping[str, Sequence[Turn]], rivals: Mapping[str, str], batch: int | None = None
) -> dict[str, Cell]:
    """Returns each contender's cell by its name; a ratio is taken within a round.

    All contenders must have the same number of rounds. `rivals` names the contender of ours that
    each is compared with; without turns of the rival there is no ratio. With `batch`, a cell has
    the tokens per step of one sequence.
    """
    found = {}
    for name, own in turns.items():
        rival = rivals.get(name, name)
        pairs = zip(turns[rival], own, strict=True) if rival in turns and rival != name else None
        ratios = (
            None
            if pairs is None
            else Spread.of([ours.rate / theirs.rate for ours, theirs in pairs])
        )
        found[name] = Cell(
            rate=Spread.of([turn.rate for turn in own]),
            ratio=ratios,
            tokens_per_step=None if batch is None else _tokens_per_step(own) / batch,
        )
    return found


def _tokens_per_step(turns: Sequence[Turn]) -> float:
    return sum(turn.num_tokens for turn in turns) / sum(turn.num_steps for turn in turns)


def turn_order(names: Sequence[str], round_number: int) -> list[str]:
    """Returns the names rotated by the round's number, so that each comes first equally often."""
    start = round_number % len(names) if names else 0
    return [*names[start:], *names[:start]]
