"""Scores of pairs by the vectors of tokens, which arrive in any order."""

import asyncio
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.vectors import EncodedText, LateScores

PAIRS = [(0, 1), (0, 2), (3, 1)]


def make_rows(seed: int, num_tokens: int, size: int = 4) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((num_tokens, size), np.float32)


def make_text(num_tokens: int, *, without: int | None = None) -> EncodedText:
    kept = None if without is None else tuple(place != without for place in range(num_tokens))
    return EncodedText([1] * num_tokens, num_tokens, kept=kept)


def score(query: NDArray[np.float32], document: NDArray[np.float32]) -> float:
    cosines = query @ document.T
    cosines /= np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(document, axis=1)
    return float(cosines.max(axis=1).sum())


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_scores_do_not_depend_on_the_order_of_arrival(order: tuple[int, ...]) -> None:
    texts = [make_text(3), make_text(5, without=2), make_text(1), make_text(2)]
    rows = [make_rows(place, len(text.token_ids)) for place, text in enumerate(texts)]
    scores = LateScores(texts, PAIRS, is_mean=False)

    async def take_all() -> None:
        await asyncio.gather(*(scores.take(place, rows[place]) for place in order))

    asyncio.run(take_all())
    kept = [np.delete(each, 2, axis=0) if place == 1 else each for place, each in enumerate(rows)]
    expected = [score(kept[query], kept[document]) for query, document in PAIRS]
    assert scores.values == pytest.approx(expected, abs=1e-5)


def test_long_texts_have_the_same_scores() -> None:
    texts = [make_text(50), make_text(3000), make_text(4000), make_text(60)]
    rows = [make_rows(place, len(text.token_ids), 300) for place, text in enumerate(texts)]
    scores = LateScores(texts, PAIRS, is_mean=True)

    async def take_all() -> None:
        await asyncio.gather(*(scores.take(place, rows[place]) for place in (1, 0, 3, 2)))

    asyncio.run(take_all())
    expected = [score(rows[query], rows[document]) / len(rows[query]) for query, document in PAIRS]
    assert scores.values == pytest.approx(expected, abs=1e-5)


def test_a_text_without_vectors_has_the_score_0() -> None:
    scores = LateScores([make_text(2), make_text(1, without=0)], [(0, 1)], is_mean=False)
    asyncio.run(scores.take(0, make_rows(0, 2)))
    asyncio.run(scores.take(1, make_rows(1, 1)))
    assert scores.values.tolist() == [0]
