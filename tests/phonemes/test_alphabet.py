"""Phonemes have characters of Kokoro's vocabulary only."""

import pytest

from ouzel.phonemes.alphabet import MARKS, VOCABULARY, VOWELS, keep_known


def test_the_vocabulary_has_the_characters_of_the_model() -> None:
    assert len(VOCABULARY) == 114
    assert VOWELS < VOCABULARY
    assert set(MARKS) < VOCABULARY
    assert VOCABULARY.isdisjoint("gBCDEFGHJKLMNPRUVXZ0123456789-'’‘^_\n")


@pytest.mark.parametrize(
    ("phonemes", "expected"),
    [
        ("həlˈO wˈɜɹld!", "həlˈO wˈɜɹld!"),
        ("gˈʌm  \n ɝ", "ɡˈʌm ɜɹ"),
        ("a_1-b^漢", "ab"),
        ("nˈɐ̃ʊ̃", "nˈɐ̃ʊ̃"),
        ("\x00\u200b", ""),
    ],
)
def test_other_characters_become_known_ones_or_nothing(phonemes: str, expected: str) -> None:
    assert keep_known(phonemes) == expected
