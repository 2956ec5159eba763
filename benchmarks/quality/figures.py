"""Computes figures of a configuration: the distance of its next tokens from the truth."""

from dataclasses import dataclass
from typing import Any  # both widths of floats

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.truth import NUM_BEST, Floats, Truth, log_softmax, scored_positions

LogProbs = NDArray[np.floating[Any]]

_LEAST = 1e-12  # a tiny probability in the place of 0


@dataclass(frozen=True)
class Answers:
    """The answers of one configuration for one window."""

    logits: Floats  # [S, vocabulary], of the scored positions
    greedy: list[int]


@dataclass(frozen=True)
class Figures:
    """KL divergences are of the next token, from the truth, in nats."""

    kl: float  # mean divergence over all scored positions
    kl_p99: float
    perplexity_ratio: float  # ratio to the perplexity of the truth
    same_best: float  # share of positions with the same best token as the truth
    # Greedy tokens that agree with the truth before the first other token, mean of the windows.
    num_greedy: float


class FiguresBuilder:
    """Compares answers window by window."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._divergences: list[LogProbs] = []
        self._gains: list[LogProbs] = []
        self._same: list[Floats] = []
        self._num_greedy: list[int] = []

    def add(self, index: int, answers: Answers) -> None:
        truth, window = self._truth, self._truth.windows[index]
        log_probs = log_softmax(answers.logits)
        best = truth.best[index]
        next_ids = window[scored_positions(len(window)) + 1]
        known = np.take_along_axis(log_probs, best, axis=1)
        self._divergences.append(divergences(truth.best_log_probs[index], known))
        self._gains.append(
            truth.next_log_probs[index] - log_probs[np.arange(len(next_ids)), next_ids]
        )
        self._same.append((log_probs.argmax(axis=1) == best[:, 0]).astype(np.float32))
        equal = np.array(answers.greedy) == truth.greedy[index]
        self._num_greedy.append(len(equal) if equal.all() else int(equal.argmin()))

    def build(self) -> Figures:
        kl = np.concatenate(self._divergences)
        return Figures(
            kl=float(kl.mean()),
            kl_p99=float(np.quantile(kl, 0.99)),
            perplexity_ratio=float(np.exp(np.concatenate(self._gains).mean())),
            same_best=float(np.concatenate(self._same).mean()),
            num_greedy=float(np.mean(self._num_greedy)),
        )


def divergences(true_log_probs: LogProbs, log_probs: LogProbs) -> NDArray[np.float64]:
    """Takes log-probabilities [S, NUM_BEST] of the truth's best tokens. Returns the KL divergence
    of each position.

    All other tokens count as one outcome, so that the figure is a lower bound; see `truth.py`.
    """
    assert true_log_probs.shape[1] == NUM_BEST
    true = true_log_probs.astype(np.float64)
    other = log_probs.astype(np.float64)
    true_rest = np.maximum(1.0 - np.exp(true).sum(axis=1), _LEAST)
    other_rest = np.maximum(1.0 - np.exp(other).sum(axis=1), _LEAST)
    kl: NDArray[np.float64] = (np.exp(true) * (true - other)).sum(axis=1) + true_rest * np.log(
        true_rest / other_rest
    )
    return kl
