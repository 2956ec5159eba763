"""The quality bench measures divergences from stored, truncated reference distributions."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality.figures import Answers, FiguresBuilder
from benchmarks.quality.stored_truth import DIRECTORY, load_stored_vectors
from benchmarks.quality.texts import SENTENCES
from benchmarks.quality.truth import (
    NUM_BEST,
    NUM_GREEDY,
    Floats,
    Ids,
    TruthBuilder,
    load_truth,
    log_softmax,
    scored_positions,
)

VOCAB_SIZE = 4096
GREEDY = list(range(NUM_GREEDY))


def random_case(noise: float) -> tuple[Ids, Floats, Floats]:
    """Returns a window, logits as sharp as a real model's, and the same logits with noise."""
    random = np.random.default_rng(0)
    window = random.integers(VOCAB_SIZE, size=64).astype(np.int32)
    shape = (len(scored_positions(len(window))), VOCAB_SIZE)
    logits = (4 * random.standard_normal(shape)).astype(np.float32)
    return window, logits, logits + (noise * random.standard_normal(shape)).astype(np.float32)


def whole_divergence(true_logits: Floats, logits: Floats) -> float:
    true, other = log_softmax(true_logits), log_softmax(logits)
    return float((np.exp(true) * (true - other)).sum(axis=1).mean())


def make_builder(window: Ids, logits: Floats) -> FiguresBuilder:
    truth = TruthBuilder()
    truth.add(window, logits, GREEDY)
    return FiguresBuilder(truth.build())


def test_the_truth_itself_has_no_divergence() -> None:
    window, logits, _ = random_case(0)
    builder = make_builder(window, logits)
    builder.add(0, Answers(logits, GREEDY))
    figures = builder.build()
    assert abs(figures.kl) < 1e-9
    assert figures.perplexity_ratio == pytest.approx(1.0, abs=1e-6)
    assert (figures.same_best, figures.num_greedy) == (1.0, NUM_GREEDY)


def test_a_truncated_truth_gives_a_close_lower_bound() -> None:
    window, logits, noisy = random_case(0.05)
    builder = make_builder(window, logits)
    builder.add(0, Answers(noisy, GREEDY))
    whole = whole_divergence(logits, noisy)
    assert 0.8 * whole < builder.build().kl < whole


def test_greedy_tokens_count_up_to_the_first_difference() -> None:
    window, logits, _ = random_case(0)
    builder = make_builder(window, logits)
    builder.add(0, Answers(logits, [*GREEDY[:7], -1, *GREEDY[8:]]))
    assert builder.build().num_greedy == 7


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.npz")), ids=lambda path: path.stem)
def test_a_stored_truth_is_a_distribution_with_the_next_tokens_of_its_text(path: Path) -> None:
    truth = load_truth(path)
    num_windows, window_len = truth.windows.shape
    positions = scored_positions(window_len)
    assert truth.best.shape == (num_windows, len(positions), NUM_BEST)
    assert (np.diff(truth.best_log_probs) <= 0).all()
    assert (np.exp(truth.best_log_probs.astype(np.float64)).sum(axis=2) < 1 + 1e-5).all()
    is_next = truth.best == truth.windows[:, positions + 1, None]
    assert is_next.any(axis=2).mean() > 0.8
    assert np.array_equal(truth.best_log_probs[is_next], truth.next_log_probs[is_next.any(axis=2)])


def test_the_stored_vectors_are_of_length_1() -> None:
    vectors = load_stored_vectors()
    assert len(vectors) == len(SENTENCES)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
