"""Turns English texts into phonemes.

Steps: normalised text -> words and marks -> phonemes of known words -> espeak-ng or rules for the
other words -> forms of a, the and to that depend on the next sound.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ouzel.phonemes.alphabet import VOWELS, keep_known
from ouzel.phonemes.clauses import Piece, join_pieces
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.espeak_words import EspeakEnglish
from ouzel.phonemes.english.letter_rules import pronounce_by_letters
from ouzel.phonemes.english.lexicon import Lexicon
from ouzel.phonemes.english.normaliser import normalise
from ouzel.phonemes.english.other_scripts import strip_marks
from ouzel.phonemes.english.pronouncer import Pronouncer
from ouzel.phonemes.english.tokens import Token, divide_tokens

_MAX_KNOWN = 20_000  # words whose answers of espeak-ng are stored
_QUOTES = frozenset('"“”()')
# The lexicons' flap and glottal stop are other characters of Kokoro's alphabet.
_KOKORO = str.maketrans({"ɾ": "T", "ʔ": "t"})
_WEAK = {"a": "ɐ", "to": "tə", "To": "tə", "TO": "tə", "I": "ˌI"}
_WEAK_BEFORE_VOWEL = _WEAK | {"to": "tʊ", "To": "tʊ", "TO": "tʊ"}
_MAX_CONTEXT = 40  # words of a clause that decide between pronunciations


@dataclass(frozen=True, slots=True)
class _Clause:
    """The words between two marks, in small letters, as context."""

    lower_words: tuple[str, ...]
    is_loud: bool


class EnglishPhonemizer:
    """Pronounces English of one dialect. Threads may share it."""

    def __init__(
        self, dialect: Dialect, lexicon: Lexicon, espeak: EspeakEnglish | None = None
    ) -> None:
        self._dialect = dialect
        self._pronouncer = Pronouncer(dialect, lexicon)
        self._espeak = espeak
        self._answers: dict[str, str] = {}
        self._lock = threading.Lock()  # guards _answers

    def to_phonemes(self, text: str) -> str:
        """Returns the phonemes and marks of a text."""
        tokens = divide_tokens(normalise(text, self._dialect))
        found = self._find_known(tokens)
        missing = [
            token.text
            for token, phonemes in zip(tokens, found, strict=True)
            if phonemes is None and not token.is_mark
        ]
        answers = self._pronounce_unknown(missing)
        spoken = [
            token.text if token.is_mark else phonemes or answers[token.text]
            for token, phonemes in zip(tokens, found, strict=True)
        ]
        _choose_weak_forms(tokens, spoken)
        pieces = [
            Piece(phonemes, token.is_mark)
            for token, phonemes in zip(tokens, spoken, strict=True)
            if phonemes
        ]
        return keep_known(join_pieces(pieces).translate(_KOKORO))

    def _find_known(self, tokens: Sequence[Token]) -> list[str | None]:
        """Returns the phonemes of each word that is known; None for others and for marks."""
        found: list[str | None] = []
        for clause in _divide_clauses(tokens):
            words = [token.text for token in clause if not token.is_mark]
            context = _make_context(words)
            place = 0
            for token in clause:
                if token.is_mark:
                    found.append(None)
                    continue
                found.append(self._find(token.text, context, place, place + 1 == len(words)))
                place += 1
        return found

    def _find(self, word: str, clause: _Clause, place: int, is_last: bool) -> str | None:
        return self._pronouncer.pronounce(
            word, clause.lower_words, place, is_last=is_last, is_loud=clause.is_loud
        )

    def _pronounce_unknown(self, words: Iterable[str]) -> dict[str, str]:
        """Returns the phonemes of words that no lexicon has; asks espeak-ng once for all."""
        wanted = dict.fromkeys(words)
        with self._lock:
            answers = {word: self._answers[word] for word in wanted if word in self._answers}
        new = [word for word in wanted if word not in answers]
        spellings = [strip_marks(word).replace("-", " ") for word in new]
        asked = self._espeak.pronounce(spellings) if self._espeak and new else [None] * len(new)
        fresh = {
            word: phonemes or pronounce_by_letters(spelling, self._dialect)
            for word, spelling, phonemes in zip(new, spellings, asked, strict=True)
        }
        # A word is asked again if the command failed, which another time may not.
        lasting = [
            (word, fresh[word])
            for word, phonemes in zip(new, asked, strict=True)
            if phonemes or self._espeak is None
        ]
        with self._lock:
            if len(self._answers) + len(lasting) > _MAX_KNOWN:
                self._answers.clear()
            self._answers.update(lasting[:_MAX_KNOWN])
        return answers | fresh


def _divide_clauses(tokens: Sequence[Token]) -> list[list[Token]]:
    """Divides the tokens after each mark but quotes, and after _MAX_CONTEXT tokens."""
    clauses: list[list[Token]] = [[]]
    for token in tokens:
        clauses[-1].append(token)
        ends = token.is_mark and token.text not in _QUOTES
        if ends or len(clauses[-1]) >= _MAX_CONTEXT:
            clauses.append([])
    return clauses


def _make_context(words: Sequence[str]) -> _Clause:
    is_loud = len(words) > 2 and all(word.isupper() for word in words)
    return _Clause(tuple(word.lower() for word in words), is_loud)


def _choose_weak_forms(tokens: Sequence[Token], spoken: list[str]) -> None:
    """Replaces the phonemes of a, an, the, to and I by the next sound, from the end."""
    next_is_vowel: bool | None = None  # None: a mark or the end follows
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        if token.is_mark:
            next_is_vowel = next_is_vowel if token.text in _QUOTES else None
            continue
        is_first = place == 0 or tokens[place - 1].is_mark
        if weak := _find_weak_form(token.text, is_first, next_is_vowel):
            spoken[place] = weak
        next_is_vowel = _begins_with_vowel(spoken[place])


def _find_weak_form(word: str, is_first: bool, next_is_vowel: bool | None) -> str | None:
    if word == "A":  # the letter, but for the first word
        return "ɐ" if is_first and next_is_vowel is not None else None
    if word.lower() == "the":
        return "ði" if next_is_vowel else "ðə"
    if word in ("an", "An"):
        return "ɐn"
    if next_is_vowel is None:
        return None
    return _WEAK_BEFORE_VOWEL.get(word) if next_is_vowel else _WEAK.get(word)


def _begins_with_vowel(phonemes: str) -> bool:
    sounds = phonemes.lstrip("ˈˌ")
    return sounds[:1] in VOWELS if sounds else False
