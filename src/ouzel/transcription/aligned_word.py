"""Gives each word of a window its times and its probability."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.transcription.word_split import TokenWord

_MAX_MEDIAN_S = 0.7


@dataclass(frozen=True, slots=True)
class AlignedWord:
    text: str  # empty: the word was merged into a neighbour
    num_tokens: int
    start_s: float  # since the begin of the window
    end_s: float
    probability: float

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


def align_words(
    words: Sequence[TokenWord],
    token_begins_s: NDArray[np.float64],
    probabilities: Sequence[float],
) -> list[AlignedWord]:
    """Gives words their times.

    `token_begins_s` has the begin of each token, and of the end token behind them;
    `probabilities` has the probability of each token.
    """
    places = [0, *accumulate(word.num_tokens for word in words)]
    return [
        AlignedWord(
            text=word.text,
            num_tokens=word.num_tokens,
            start_s=float(token_begins_s[begin]),
            end_s=float(token_begins_s[end]),
            probability=sum(probabilities[begin:end]) / (end - begin),
        )
        for word, (begin, end) in zip(words, pairwise(places), strict=True)
    ]


def compute_median_duration(words: Sequence[AlignedWord]) -> float:
    """Returns the median duration of words that have one, at most 0.7 s; 0 without such words."""
    durations = [word.duration_s for word in words if word.duration_s]
    return min(_MAX_MEDIAN_S, float(np.median(durations))) if durations else 0.0
