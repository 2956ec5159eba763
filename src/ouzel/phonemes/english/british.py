"""Changes phonemes of American English into British English."""

import re

_VOWELS = "AIOQWYaiuɑɒɔəɛɜɪʊʌᵊ"
_PAIRS = {
    "T": "t",
    "ɾ": "t",
    "O": "Q",
    "æ": "a",
    "ᵻ": "ɪ",
    "i": "iː",
    "u": "uː",
}
_SILENT_R = re.compile(f"ɹ(?![ˈˌ]?[{_VOWELS}])")
_FINAL_LONG = re.compile(r"(?<=[^ˈˌ\s][^ˈˌ\s])(?<![ˈˌ]..)iː(?=$| )")


def make_british(phonemes: str) -> str:
    """Returns the phonemes without an r that is silent, with British vowels and their lengths."""
    phonemes = re.sub("ɑ(?!ɹ)", "ɒ", phonemes)
    for american, british in _PAIRS.items():
        phonemes = phonemes.replace(american, british)
    phonemes = re.sub("([ɑɔɜ])ɹ", r"\1ːɹ", phonemes)
    phonemes = re.sub("ɔ(?!ː)", "ɔː", phonemes)
    phonemes = re.sub(f"ɛɹ(?![ˈˌ]?[{_VOWELS}])", "ɛː", phonemes)
    phonemes = re.sub(f"([ɪʊ])ɹ(?![ˈˌ]?[{_VOWELS}])", r"\1ə", phonemes)
    return _FINAL_LONG.sub("i", _SILENT_R.sub("", phonemes)).replace("ɔːI", "ɔI")
