"""Removes everything from a text that nobody reads aloud: marks of Markdown, emoji, controls."""

import re
import unicodedata

_KEPT = {"²", "³", "…", "°", "™"}  # read later, or part of the vocabulary
_REPLACED = {
    "‘": "'",
    "’": "'",
    "ʼ": "'",
    "‛": "'",
    "′": "'",
    "`": " ",
    "´": "'",
    "„": "“",
    "«": "“",
    "»": "”",
    "‹": "“",
    "›": "”",
    "″": '"',
    "‐": "-",
    "‑": "-",
    "‒": "–",
    "―": "—",
    "−": "-",
    "⁄": "/",
    "[": "(",
    "]": ")",
    "{": "(",
    "}": ")",
    "¿": " ",
    "¡": " ",
    "·": " ",
    "•": " ",
    "|": ", ",
    "。": ". ",
    "、": ", ",
    "™": " ",
    "®": " ",
    "©": " ",
}
_SPACES = frozenset({"Cc", "Zs", "Zl", "Zp", "Cn", "Co", "Cs"})
_NOTHING = frozenset({"Cf", "Sk", "Me"})
_MAX_EXPANSION = 4

_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)[^\n]{0,100}$", re.M)
_LINE_MARK = re.compile(r"^[ \t]{0,12}(?:#{1,6}|[-*+>]|[0-9]{1,3}\))[ \t]{1,4}", re.M)
_ITEM_BREAK = re.compile(  # the end of an item of a list
    r"(?<=[^\s.,;:!?…—])[ \t]{0,20}\n(?=[ \t]{0,12}(?:[-*+]|[0-9]{1,3}[.)])[ \t])"
)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:[^()\s]{1,500})\)")
_EMPHASIS = re.compile(r"(?<!\w)(?:[*_]{1,3}|~~)(?=\S)|(?<=\S)(?:[*_]{1,3}|~~)(?!\w)")
_BREAKS = re.compile(r"(?<=[^\s.,;:!?…—])[ \t]{0,20}\n\s{0,20}\n")


class _Characters(dict[int, str]):
    """Maps code points to texts for `str.translate`; each is computed once."""

    def __missing__(self, code_point: int) -> str:
        text = _simplify(chr(code_point))
        self[code_point] = text
        return text


def _simplify(char: str) -> str:
    if char in _REPLACED or char in _KEPT:
        return _REPLACED.get(char, char)
    category = unicodedata.category(char)
    if category in _SPACES or category == "So":
        return " "
    if category in _NOTHING or "\N{VARIATION SELECTOR-1}" <= char <= "\N{VARIATION SELECTOR-16}":
        return ""
    if category == "Nd":
        return str(unicodedata.digit(char))
    return char if category.startswith("M") else _make_compatible(char)


def _make_compatible(char: str) -> str:
    """Returns the simple form of a character: ﬁ is fi. A fraction gets a space: 2½ is 2 1/2."""
    simple = unicodedata.normalize("NFKC", char)
    if len(simple) > _MAX_EXPANSION:
        return " "
    return f" {simple.replace('⁄', '/')}" if "⁄" in simple else simple


_CHARACTERS = _Characters()


def make_plain(text: str) -> str:
    """Returns one line of text with simple characters, without marks of Markdown."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _FENCE.sub(" ", text)
    text = _ITEM_BREAK.sub(".\n", text)
    text = _LINE_MARK.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _EMPHASIS.sub("", text)
    text = _BREAKS.sub(". ", text)
    text = unicodedata.normalize("NFC", text).translate(_CHARACTERS)
    return " ".join(text.split())
