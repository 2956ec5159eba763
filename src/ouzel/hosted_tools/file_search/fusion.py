"""Joins ranked lists by reciprocal rank fusion: a place counts weight / (constant + rank)."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

RANK_CONSTANT = 10

Place = TypeVar("Place", bound=Hashable)


def fuse(
    lists: Iterable[tuple[float, Sequence[Place]]], *, constant: int = RANK_CONSTANT
) -> list[tuple[Place, float]]:
    """Joins lists, each with its weight, and returns places with scores, the best first.

    The place at the head of all lists has the score 1.
    """
    weighted = [(weight, places) for weight, places in lists if weight > 0]
    best = sum(weight for weight, _ in weighted) / (constant + 1)
    scores: dict[Place, float] = {}
    for weight, places in weighted:
        for rank, place in enumerate(places, start=1):
            scores[place] = scores.get(place, 0.0) + weight / (constant + rank) / best
    # Python's sort keeps the order of equal scores, so that the result does not vary.
    return sorted(scores.items(), key=lambda entry: -entry[1])
