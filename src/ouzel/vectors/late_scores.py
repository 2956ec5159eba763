"""Scores pairs of texts by the vectors of their tokens (MaxSim, late interaction).

The score of a pair is the sum over the query's tokens of the largest cosine with a token of the
document; some models take the mean. The vectors of a document are dropped when its pairs have their
scores, so that thousands of documents need little memory.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.vectors.encoded_text import EncodedText
from ouzel.vectors.finish import normalise_rows

Rows = NDArray[np.float32]
Result = TypeVar("Result")

_FEW_PRODUCTS = 2**20  # multiplications that are done within a moment


@dataclass(slots=True)
class _Text:
    """The pairs of a text whose scores are missing, and its vectors once they have come."""

    pairs: set[int] = field(default_factory=set)
    rows: Rows | None = None


class LateScores:
    """Takes the vectors of texts in any order, and scores a pair when both its texts are there.

    It is used by one thread.
    """

    def __init__(
        self,
        texts: Sequence[EncodedText],
        places: Sequence[tuple[int, int]],
        *,
        is_mean: bool,
    ) -> None:
        """`places` has the positions in `texts` of the query and the document of each pair."""
        self.values = np.zeros(len(places), np.float32)
        self._texts = texts
        self._places = places
        self._is_mean = is_mean
        self._open: dict[int, _Text] = {}
        for pair, both in enumerate(places):
            for place in both:
                self._open.setdefault(place, _Text()).pairs.add(pair)

    async def take(self, place: int, vectors: Rows) -> None:
        """Takes the vectors of all tokens of a text."""
        text = self._open[place]
        keep = partial(keep_rows, self._texts[place], vectors)
        text.rows = await _compute(keep, vectors.size)
        # No other task runs between these two lines, so each pair is ready in one task only.
        ready = [pair for pair in sorted(text.pairs) if self._has_both(pair)]
        for pair in ready:
            query, document = (self._rows(place) for place in self._places[pair])
            score = partial(compute_max_sim, query, document, is_mean=self._is_mean)
            self.values[pair] = await _compute(score, query.size * len(document))
        for pair in ready:
            self._close(pair)

    def _has_both(self, pair: int) -> bool:
        return all(self._open[place].rows is not None for place in self._places[pair])

    def _rows(self, place: int) -> Rows:
        rows = self._open[place].rows
        assert rows is not None, "the pair is complete"
        return rows

    def _close(self, pair: int) -> None:
        for place in self._places[pair]:
            text = self._open[place]
            text.pairs.remove(pair)
            if not text.pairs:
                text.rows = None


async def _compute(work: Callable[[], Result], num_products: int) -> Result:
    return work() if num_products <= _FEW_PRODUCTS else await asyncio.to_thread(work)


def keep_rows(text: EncodedText, vectors: Rows, *, normalises: bool = True) -> Rows:
    """Returns the vectors of the tokens that count, with length 1 if `normalises`."""
    kept = vectors if text.kept is None else vectors[np.array(text.kept)]
    return normalise_rows(kept) if normalises else kept


def compute_max_sim(query: Rows, document: Rows, *, is_mean: bool) -> float:
    """Returns the score of a pair; 0 if one of the texts has no vector left."""
    if not len(query) or not len(document):
        return 0.0
    best = (query @ document.T).max(axis=1)
    return float(best.mean() if is_mean else best.sum())
