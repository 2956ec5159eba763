"""Tests the changes of logits before a draw: penalties, bias and bans."""

import numpy as np
import pytest

from ouzel.engine.sampling.sampler import adjust
from ouzel.engine.state.sequence import Sequence
from tests.engine.requests import make_request
from tests.engine.sampling_cases import KINDS, adjust_one, make_sequence


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if make_sequence(**KINDS[kind]).params.adjusts_logits]
)
def test_adjusting_token_by_token_equals_the_reference(kind: str) -> None:
    logits = np.random.default_rng(2).normal(size=50).astype(np.float32)
    sequence = make_sequence(**KINDS[kind])
    for token_id in (4, 4, 2, 4, 2, 9, 1, 2, 4):
        sequence.token_ids.append(token_id)
        row = logits.copy()

        adjust(row, sequence)

        np.testing.assert_allclose(row, adjust_one(logits, sequence), rtol=1e-5)


def test_presence_and_frequency_are_subtracted_from_negative_logits_too() -> None:
    row = np.array([-1.0, 2.0, -3.0, 0.0], dtype=np.float32)

    adjust(row, make_sequence([0, 0, 1], presence_penalty=0.5, frequency_penalty=0.25))

    assert row.tolist() == [-2.0, 1.25, -3.0, 0.0]


@pytest.mark.parametrize(
    ("bad_words", "output", "banned"),
    [
        (((7,),), [], [7]),
        (((7,),), [7, 7], [7]),
        (((5, 7),), [], []),
        (((5, 7),), [6, 5], [7]),
        (((5, 7),), [5, 6], []),
        (((5, 6, 7), (6, 8), (5, 9)), [5, 6], [7, 8]),
        (((5, 5, 5),), [5, 5], [5]),
        (((3, 2, 8), (2, 9)), [], []),  # the prompt ends with 3, 2
        (((3, 2, 8), (2, 5, 9), (5, 9)), [5], [9]),
    ],
)
def test_a_bad_word_cannot_be_completed(
    bad_words: tuple[tuple[int, ...], ...], output: list[int], banned: list[int]
) -> None:
    row = np.zeros(10, dtype=np.float32)

    adjust(row, make_sequence(output, bad_words=bad_words))

    assert np.flatnonzero(np.isneginf(row)).tolist() == banned


@pytest.mark.parametrize(
    ("size", "banned"),
    [(1, [1, 2, 3, 4]), (2, [2, 3, 4]), (3, [2]), (4, []), (7, []), (8, []), (64, [])],
)
def test_no_ngram_of_prompt_and_output_comes_twice(size: int, banned: list[int]) -> None:
    row = np.zeros(10, dtype=np.float32)

    adjust(row, make_sequence([2, 4, 3, 2], no_repeat_ngram_size=size))  # after 1, 2, 3, 2

    assert np.flatnonzero(np.isneginf(row)).tolist() == banned


def test_min_tokens_forbids_end_and_stop_tokens() -> None:
    request = make_request([1], min_tokens=2, stop_token_ids=(5,), eos_token_ids=(6,))
    row = np.zeros(10, dtype=np.float32)

    adjust(row, Sequence(request, 0, 0))

    assert np.flatnonzero(np.isneginf(row)).tolist() == [5, 6]
