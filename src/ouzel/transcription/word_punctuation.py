"""Merges punctuation marks into the words beside them, as openai-whisper's `timing.py` does."""

from collections.abc import Sequence
from dataclasses import replace

from ouzel.transcription.aligned_word import AlignedWord

# A word is one of these marks if it is a part of the text, which allows pairs such as `.)`.
_BEFORE_WORDS = "\"'“¿([{-"
_BEHIND_WORDS = "\"'.。,，!！?？:：”)]}、"


def merge_punctuation(words: Sequence[AlignedWord]) -> list[AlignedWord]:
    """Returns the words without lone marks: the neighbour has their text and tokens.

    The times and the probability of the neighbour stay.
    """
    return _merge_behind(_merge_before(words))


def _merge_before(words: Sequence[AlignedWord]) -> list[AlignedWord]:
    merged: list[AlignedWord] = []  # the last word first
    for word in reversed(words):
        is_mark = word.text.startswith(" ") and word.text.strip() in _BEFORE_WORDS
        if is_mark and merged:
            merged[-1] = _join(word, merged[-1], kept=merged[-1])
        else:
            merged.append(word)
    return merged[::-1]


def _merge_behind(words: Sequence[AlignedWord]) -> list[AlignedWord]:
    merged: list[AlignedWord] = []
    for word in words:
        if merged and not merged[-1].text.endswith(" ") and word.text in _BEHIND_WORDS:
            merged[-1] = _join(merged[-1], word, kept=merged[-1])
        else:
            merged.append(word)
    return merged


def _join(first: AlignedWord, second: AlignedWord, *, kept: AlignedWord) -> AlignedWord:
    return replace(
        kept, text=first.text + second.text, num_tokens=first.num_tokens + second.num_tokens
    )
