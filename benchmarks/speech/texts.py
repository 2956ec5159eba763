"""Compares transcripts: normalised words, and the distance between two texts."""

import re
from collections.abc import Mapping, Sequence

_APOSTROPHES = re.compile("[’‘`]")
# Anything else than letters, digits and apostrophes within a word divides words.
_BETWEEN_WORDS = re.compile(r"[^\w']+|(?<!\w)'|'(?!\w)|_")


def split_words(text: str) -> list[str]:
    """Returns the words of an English text in lower case, without punctuation.

    Numerals stay as they are: `10` and `ten` are different words.
    """
    return _BETWEEN_WORDS.sub(" ", _APOSTROPHES.sub("'", text.lower())).split()


def count_errors(words: Sequence[str], reference: Sequence[str]) -> int:
    """Returns the fewest replaced, missing and additional words (Levenshtein)."""
    row = list(range(len(reference) + 1))
    for number, word in enumerate(words, 1):
        diagonal, row[0] = row[0], number
        for place, expected in enumerate(reference, 1):
            replaced = diagonal + (word != expected)
            diagonal = row[place]
            row[place] = min(row[place] + 1, row[place - 1] + 1, replaced)
    return row[-1]


def measure_error_rate(heard: Mapping[str, str], references: Mapping[str, str]) -> float:
    """Returns errors per word of the references; both have a text for each file."""
    errors = words = 0
    for file, reference in references.items():
        expected = split_words(reference)
        errors += count_errors(split_words(heard[file]), expected)
        words += len(expected)
    return errors / words
