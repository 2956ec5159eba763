"""Finds the phonemes of words in the lexicons, or derives them from other words there."""

from collections.abc import Sequence

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.heteronyms import guess_tag, is_metal
from ouzel.phonemes.english.lexicon import DEFAULT, NAME, Entry, Lexicon, select
from ouzel.phonemes.english.other_scripts import strip_marks
from ouzel.phonemes.english.own_words import find_own_word, spell
from ouzel.phonemes.english.tokens import divide_camel_case
from ouzel.phonemes.english.word_endings import add_contraction, add_s, pronounce_ending

_MAX_SPELLED = 5
_MIN_PART = 3  # letters of a part of a compound
_MAX_COMPOUND = 24
_LEAD_METAL = "lˈɛd"
# Words in capitals for emphasis, which the lexicons also have as abbreviations
_EMPHASIZED = frozenset(
    [
        "add",
        "all",
        "am",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "did",
        "do",
        "etc",
        "few",
        "for",
        "get",
        "go",
        "got",
        "had",
        "has",
        "he",
        "her",
        "hi",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "is",
        "its",
        "let",
        "may",
        "me",
        "my",
        "new",
        "no",
        "not",
        "now",
        "of",
        "off",
        "oh",
        "old",
        "on",
        "one",
        "or",
        "our",
        "out",
        "own",
        "put",
        "see",
        "she",
        "so",
        "the",
        "to",
        "too",
        "try",
        "two",
        "up",
        "use",
        "was",
        "way",
        "we",
        "who",
        "why",
        "yes",
        "you",
        "your",
    ]
)


class Pronouncer:
    """Pronounces words of one dialect. Threads may share it."""

    def __init__(self, dialect: Dialect, lexicon: Lexicon) -> None:
        self._dialect = dialect
        self._lexicon = lexicon

    def pronounce(
        self, word: str, lower_words: Sequence[str], place: int, *, is_last: bool, is_loud: bool
    ) -> str | None:
        """Returns the phonemes of the word at a place of its clause, or None for an unknown word.

        `is_last`: a mark follows. `is_loud`: the whole clause has capitals.
        """
        if lower_words[place] == "lead" and is_metal(lower_words, place):
            return _LEAD_METAL
        if own := find_own_word(word, self._dialect):
            return own
        if word.isupper() and len(word) > 1 and not is_loud:
            return self._pronounce_capitals(word)
        if _is_plural_of_capitals(word) and self._lexicon.find(word) is None:
            return add_s(spell(word[:-1], self._dialect), self._dialect)
        if (entry := self._find_entry(word)) is not None:
            phonemes = select(entry, guess_tag(lower_words, place), is_last)
            return phonemes if phonemes else spell(word, self._dialect)
        return self._derive(word)

    def _find_entry(self, word: str) -> Entry | None:
        if word.isupper() and len(word) > 1:
            return self._lexicon.find_any_case(word.lower())
        return self._lexicon.find_any_case(word)

    def _pronounce_capitals(self, word: str) -> str | None:
        """Tells abbreviations, NASA and IBM, from words with emphasis, NEVER."""
        if word.lower() in _EMPHASIZED:
            return self._find_plain(word.lower())
        entry = self._lexicon.find(word)
        if entry is not None:
            phonemes = entry[NAME] if NAME in entry else entry.get(DEFAULT)
            return phonemes or spell(word, self._dialect)
        is_word = len(word) > 3 and self._lexicon.find(word.lower()) is not None
        if is_word or (len(word) > _MAX_SPELLED and word.isalpha()):
            return self._find_plain(word.lower()) or self._derive(word.lower())
        if "-" in word or "'" in word:
            return self._derive(word)
        return spell(strip_marks(word), self._dialect)

    def _find_plain(self, word: str) -> str | None:
        """Returns the phonemes of a word without regard to its neighbours."""
        if own := find_own_word(word, self._dialect):
            return own
        entry = self._lexicon.find_any_case(word)
        return None if entry is None else entry.get(DEFAULT)

    def _derive(self, word: str) -> str | None:
        """Derives a word from known words; each way makes the word shorter."""
        if "-" in word:
            return self._join_parts(word.split("-"))
        if "'" in word:
            return self._derive_with_apostrophe(word)
        parts = divide_camel_case(word)
        if len(parts) > 1:
            return self._join_parts(parts)
        plain = strip_marks(word).lower()
        if plain != word.lower() and (found := self._find_plain(plain)):
            return found
        if len(plain) == 1:
            return spell(plain, self._dialect) or None
        return pronounce_ending(plain, self._find_stem, self._dialect) or self._divide(plain)

    def _find_stem(self, stem: str) -> str | None:
        if len(stem) < 2:
            return None
        return self._find_plain(stem) or pronounce_ending(stem, self._find_plain, self._dialect)

    def _join_parts(self, parts: Sequence[str]) -> str | None:
        """Returns the phonemes of all parts, or None if one is unknown."""
        found = [self._pronounce_part(part) for part in parts if part]
        known = [phonemes for phonemes in found if phonemes]
        return " ".join(known) if known and len(known) == len(found) else None

    def _pronounce_part(self, part: str) -> str | None:
        if len(part) == 1:
            return spell(part, self._dialect) or None
        if _is_plural_of_capitals(part):
            return add_s(spell(part[:-1], self._dialect), self._dialect)
        if part.isupper():
            return self._pronounce_capitals(part)
        return self._find_plain(part) or self._derive(part)

    def _derive_with_apostrophe(self, word: str) -> str | None:
        stem, apostrophe, ending = word.rpartition("'")
        if not stem:
            return self._pronounce_part(ending)
        phonemes = self._pronounce_part(stem)
        if phonemes is None or not ending:
            return phonemes
        if contracted := add_contraction(phonemes, apostrophe + ending.lower(), self._dialect):
            return contracted
        rest = self._pronounce_part(ending)
        return None if rest is None else phonemes + rest

    def _divide(self, word: str) -> str | None:
        """Divides a compound into two known words: playlist, timestamp."""
        if len(word) > _MAX_COMPOUND:
            return None
        for end in range(len(word) - _MIN_PART, _MIN_PART - 1, -1):
            first, second = self._find_plain(word[:end]), self._find_plain(word[end:])
            if first and second:
                return first + second.replace("ˈ", "ˌ")
        return None


def _is_plural_of_capitals(word: str) -> bool:
    """Tells whether the word is the plural of an abbreviation: GPUs, IDs."""
    return len(word) > 2 and word.endswith("s") and word[:-1].isupper() and word[:-1].isalpha()
