"""Writes words of other scripts with Latin letters, or names the script."""

import re
import unicodedata

_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        (
            *("a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o"),
            *("p", "r", "s", "s", "t", "i", "f", "h", "ps", "o"),
        ),
        strict=True,
    )
)
_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
        (
            *(
                "a",
                "b",
                "v",
                "g",
                "d",
                "ye",
                "yo",
                "zh",
                "z",
                "i",
                "y",
                "k",
                "l",
                "m",
                "n",
                "o",
                "p",
            ),
            *(
                "r",
                "s",
                "t",
                "u",
                "f",
                "kh",
                "ts",
                "ch",
                "sh",
                "shch",
                "",
                "y",
                "",
                "e",
                "yu",
                "ya",
            ),
            *("i", "yi", "ye", "g"),
        ),
        strict=True,
    )
)
_LATIN = {
    "ß": "ss",
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ð": "th",
    "þ": "th",
    "ł": "l",
    "ı": "i",
}
_LETTERS = _GREEK | _CYRILLIC | _LATIN
_SCRIPTS = {
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "DEVANAGARI": "Hindi",
    "HEBREW": "Hebrew",
    "ARABIC": "Arabic",
    "THAI": "Thai",
}
_OTHER_WORD = re.compile(r"[^\W\d_a-zA-Z]+|[^\W\d_]+")
_MARKED = re.compile(r"[̀-ͯ]")


def write_latin(text: str) -> str:
    """Returns the text with letters from a to z only.

    A word of a script without a table, such as Arabic, becomes the name of the script. A lone
    Greek letter becomes its name.
    """
    if text.isascii():
        return text
    return _OTHER_WORD.sub(lambda match: _write_word(match[0]), text)


def strip_marks(word: str) -> str:
    """Returns the letters without their diacritics: café is cafe."""
    simple = _MARKED.sub("", unicodedata.normalize("NFKD", word))
    return "".join(_match_case(char) for char in simple)


def _match_case(char: str) -> str:
    latin = _LETTERS.get(char.lower())
    if latin is None:
        return char
    return latin if char.islower() else latin.capitalize()


def _write_word(word: str) -> str:
    if word.isascii():
        return word
    if len(word) == 1 and word.lower() in _GREEK:
        return f" {unicodedata.name(word).split()[-1].lower()} "
    latin = strip_marks(word)
    if latin.isascii():
        return word if _is_latin(word) else latin
    names = {unicodedata.name(char, "").split(" ")[0] for char in latin if not char.isascii()}
    script = min(names)
    spoken = _SCRIPTS.get(script, script.partition("-")[0].capitalize())
    return f" {spoken or 'unknown'} " if spoken.isascii() else " unknown "


def _is_latin(word: str) -> bool:
    return all("LATIN" in unicodedata.name(char, "") for char in word)
