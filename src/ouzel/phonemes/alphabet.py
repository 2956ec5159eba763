"""This module has the characters that Kokoro knows, and equivalents of other characters.

Source: `config.json` of Kokoro-82M. The letters A, I, O, Q, W and Y are diphthongs, and T is the
American flap, as in the phonemes of misaki.
"""

MARKS = ';:,.!?—…"()“”'
NASAL = "\N{COMBINING TILDE}"
PRIMARY = "ˈ"
SECONDARY = "ˌ"
VOCABULARY = frozenset(
    MARKS
    + " "
    + NASAL
    + "ʣʥʦʨᵝꭧAIOQSTWYᵊabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌɣɤχʎʒʔ"
    "ˈˌːʰʲ↓→↗↘ᵻ"
)
VOWELS = frozenset("AIOQWYaiueoyɑæɐɒɔəɚɛɜɪɨʊʌøœɯɤᵻ")

# Characters of the International Phonetic Alphabet without a place in the vocabulary
_EQUIVALENTS = {
    "g": "ɡ",
    "ɫ": "l",
    "ɬ": "l",
    "ɭ": "l",
    "ʟ": "l",
    "ɱ": "m",
    "ʀ": "ʁ",
    "ɦ": "h",
    "ħ": "h",
    "ʍ": "w",
    "ʏ": "y",
    "ɘ": "ə",
    "ɵ": "ə",
    "ɞ": "ɜ",
    "ɝ": "ɜɹ",
    "ɶ": "œ",
    "ʉ": "u",
    "ˑ": "ː",
    "’": "",
}
_TABLE = str.maketrans(_EQUIVALENTS)


def keep_known(phonemes: str) -> str:
    """Returns the phonemes with characters of the vocabulary only, and with single spaces."""
    known = "".join(char for char in phonemes.translate(_TABLE) if char in VOCABULARY)
    return " ".join(known.split())
