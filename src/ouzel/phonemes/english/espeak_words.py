"""Turns English words into the phonemes of misaki by espeak-ng."""

import logging
import re
from collections.abc import Sequence

from ouzel.phonemes.alphabet import keep_known
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.errors import PronunciationFailed
from ouzel.phonemes.espeak_command import TIE, EspeakCommand
from ouzel.phonemes.espeak_phonemizer import DIPHTHONGS, replace_all

logger = logging.getLogger(__name__)

# Both dialects, in this order; a syllable without a vowel has a small schwa
_SHARED = {
    f"ə{TIE}l": "ᵊl",
    "ʲo": "jo",
    "ʲə": "jə",
    "ʲ": "",
    "r": "ɹ",
    "x": "k",
    "ç": "k",
    "ɐ": "ə",
    "ʔ": "t",
    "\N{COMBINING TILDE}": "",
}
_AMERICAN = {
    "ɚ": "əɹ",
    "ɜːɹ": "ɜɹ",
    "ɜː": "ɜɹ",
    "ɪə": "iə",
    "ː": "",
    "ɾ": "T",
    "o": "ɔ",
    "e": "A",
    "a": "æ",
    "ɒ": "ɑ",
}
_BRITISH = {f"e{TIE}ə": "ɛː", "iə": "ɪə", "ɚ": "ə", "ɾ": "t", "o": "ɔ", "e": "ɛ", "æ": "a"}
_SYLLABIC = re.compile("(.)\N{COMBINING VERTICAL LINE BELOW}")


class EspeakEnglish:
    """Asks espeak-ng for words that no lexicon has. Threads may share it."""

    def __init__(self, command: EspeakCommand, dialect: Dialect) -> None:
        self._command = command
        self._dialect = dialect

    def pronounce(self, words: Sequence[str]) -> list[str | None]:
        """Returns the phonemes of each word; None where the command has none or failed."""
        try:
            answers = self._command.pronounce(words)
        except PronunciationFailed as error:
            logger.warning("words are pronounced by rules: %s", error)
            return [None] * len(words)
        return [convert(answer, self._dialect) or None for answer in answers]


def convert(phonemes: str, dialect: Dialect) -> str:
    """Returns phonemes of espeak-ng in misaki's alphabet."""
    phonemes = _SYLLABIC.sub(r"ᵊ\1", phonemes)
    own = _BRITISH if dialect is Dialect.BRITISH else _AMERICAN
    # the pairs first: a lone e or o is no diphthong
    pairs = {f"e{TIE}ə": "ɛː"} if dialect is Dialect.BRITISH else {}
    for old, new in (*pairs.items(), *DIPHTHONGS.items(), *_SHARED.items(), *own.items()):
        phonemes = phonemes.replace(old, new)
    return keep_known(replace_all(phonemes, {}).replace("(", "").replace(")", ""))
