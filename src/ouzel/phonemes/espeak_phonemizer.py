"""Turns texts of a language into phonemes by espeak-ng, clause by clause."""

from collections.abc import Mapping

from ouzel.phonemes.alphabet import keep_known
from ouzel.phonemes.clauses import Piece, divide_clauses, join_pieces
from ouzel.phonemes.espeak_command import TIE, EspeakCommand
from ouzel.phonemes.plain_text import make_plain

# The pairs of espeak-ng that Kokoro was trained on as one character
DIPHTHONGS = {
    f"a{TIE}ɪ": "I",
    f"a{TIE}ʊ": "W",
    f"d{TIE}z": "ʣ",
    f"d{TIE}ʒ": "ʤ",
    f"e{TIE}ɪ": "A",
    f"o{TIE}ʊ": "O",
    f"ə{TIE}ʊ": "Q",
    f"s{TIE}s": "S",
    f"t{TIE}s": "ʦ",
    f"t{TIE}ʃ": "ʧ",
    f"ɔ{TIE}ɪ": "Y",
}


class EspeakPhonemizer:
    """Pronounces every language but English. Threads may share it."""

    def __init__(self, command: EspeakCommand) -> None:
        self._command = command

    def to_phonemes(self, text: str) -> str:
        """Returns the phonemes and marks of a text. Raises PronunciationFailed."""
        pieces = divide_clauses(make_plain(text))
        clauses = [piece.text for piece in pieces if not piece.is_mark]
        answers = iter(self._command.pronounce(clauses))
        spoken = [
            piece if piece.is_mark else Piece(_convert(next(answers)), is_mark=False)
            for piece in pieces
        ]
        return keep_known(join_pieces(spoken))


def _convert(phonemes: str) -> str:
    """Returns the phonemes without parentheses, which the vocabulary has as marks."""
    return replace_all(phonemes, DIPHTHONGS).replace("(", "").replace(")", "")


def replace_all(phonemes: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        phonemes = phonemes.replace(old, new)
    return phonemes.replace(TIE, "")
