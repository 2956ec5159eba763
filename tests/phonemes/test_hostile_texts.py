"""No text raises an error, and no character outside the vocabulary is returned."""

import random

import pytest

from ouzel.phonemes.alphabet import VOCABULARY
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.english_phonemizer import EnglishPhonemizer
from ouzel.phonemes.english.lexicon import find_lexicons, read_lexicon

NUM_CHARS = 20_000  # a pattern that backtracks would not end
PIECES = [
    *("a", "A", "1", "1,", "1.", "1-", "$", "$1", "1/", "10:", "A.", "'", "a'", "a'b-", "a-", "@"),
    *("a@a.", "http://", "www.x", "x.com ", "*", "#", "\n", "[a](", "(", ")", '"', "...", ", ,"),
    *("ʤ", "ˈ", "\u200b", "\u202e", "\x00", "e\u0301", "\u0301", "😀", "ﷺ", "½", "²", "٣", "я"),
    *("Mr. A", "e.g.", "May 1 ", "Henry I", "X", "1,000,", "5 m", "aB", "1x1", "<1", "the 0s"),
    *("\ud800", "555-1234 ", "ed", "ing", "q", "\u05d0", "東", "~", "a_1", "  ", "read to the "),
]


@pytest.fixture(scope="module")
def phonemizer() -> EnglishPhonemizer:
    return EnglishPhonemizer(Dialect.AMERICAN, read_lexicon(find_lexicons(Dialect.AMERICAN)))


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_that_repeats(phonemizer: EnglishPhonemizer, piece: str) -> None:
    text = (piece * NUM_CHARS)[:NUM_CHARS]
    assert set(phonemizer.to_phonemes(text)) <= VOCABULARY


@pytest.mark.parametrize("last", [0x80, 0x3000, 0x110000])
def test_random_characters(phonemizer: EnglishPhonemizer, last: int) -> None:
    numbers = random.Random(last)
    text = "".join(chr(numbers.randrange(last)) for _ in range(NUM_CHARS))
    phonemes = phonemizer.to_phonemes(text)
    assert set(phonemes) <= VOCABULARY
    assert phonemizer.to_phonemes(text) == phonemes
