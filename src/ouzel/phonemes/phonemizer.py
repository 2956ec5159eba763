"""Makes the phonemizer of a language. Lexicons are read at the first text of a language."""

import functools
import logging
from typing import Protocol

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.english_phonemizer import EnglishPhonemizer
from ouzel.phonemes.english.espeak_words import EspeakEnglish
from ouzel.phonemes.english.lexicon import find_lexicons, read_lexicon
from ouzel.phonemes.errors import EspeakMissing, LanguageNotSpoken, SpeechExtraMissing
from ouzel.phonemes.espeak_command import find_espeak
from ouzel.phonemes.espeak_phonemizer import EspeakPhonemizer

__all__ = ["LANGUAGES", "LanguageNotSpoken", "Phonemizer", "make_phonemizer"]

logger = logging.getLogger(__name__)

_ENGLISH = {"en-us": Dialect.AMERICAN, "en-gb": Dialect.BRITISH}
_OTHERS = ("es", "fr-fr", "hi", "it", "pt-br")  # voices of espeak-ng have the same names
LANGUAGES = (*_ENGLISH, *_OTHERS)


class Phonemizer(Protocol):
    """Turns texts of one language into phonemes. Threads may share it."""

    def to_phonemes(self, text: str) -> str:
        """Returns the phonemes of a sentence or clause, with the marks ; : , . ! ? — … " ( ) “ ”.

        All characters are in `alphabet.VOCABULARY`. The text is empty if nothing can be read aloud.
        Raises PronunciationFailed if espeak-ng fails; English has other ways then.
        """


@functools.lru_cache(maxsize=len(LANGUAGES))
def make_phonemizer(language: str) -> Phonemizer:
    """Returns the phonemizer of one of LANGUAGES; reads the lexicons of English, which takes 0.2 s.

    Raises LanguageNotSpoken, whose subclasses say whether espeak-ng or the extra `speech` is
    missing. `error.at("voice")` names the field of a request.
    """
    if language not in LANGUAGES:
        raise LanguageNotSpoken(language, LANGUAGES)
    command = find_espeak(language)
    if dialect := _ENGLISH.get(language):
        files = find_lexicons(dialect)
        espeak = None if command is None else EspeakEnglish(command, dialect)
        if files is None and espeak is None:
            raise SpeechExtraMissing(language)
        logger.info(
            "phonemes of %s: lexicons %s, espeak-ng %s",
            language,
            "missing" if files is None else "found",
            "missing" if espeak is None else "found",
        )
        return EnglishPhonemizer(dialect, read_lexicon(files), espeak)
    if command is None:
        raise EspeakMissing(language)
    return EspeakPhonemizer(command)
