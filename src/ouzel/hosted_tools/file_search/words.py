"""Splits texts into words for the index of words.

The index itself knows words of letters and digits only. So that it finds more, names in code are
also split (`maxSize` -> max, Size), and texts without spaces between words become pairs of
characters.
"""

import re
import unicodedata

_MAX_WORD = 64  # characters; longer words are no words of a language
_MAX_QUERY_WORDS = 64
_WORD = re.compile(r"[^\W_]+")
_PARTS_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Han characters, kana and the scripts of Southeast Asia that are written without spaces
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
# Words that almost every English text has: they find nothing, and cost the most time.
_STOP_WORDS_TEXT = """
a about an and any are as at be been but by can could did do does for from had has have how i if in
into is it its may me my of on or our shall should so some than that the their them then there these
they this to was we were when where which who whom whose why will with would you your
"""
_STOP_WORDS = frozenset((*_STOP_WORDS_TEXT.split(), "those", "what"))


def write_words(text: str) -> str:
    """Returns the words of a text for the index, with spaces between them."""
    return " ".join(_split(text))


def read_query(text: str) -> list[str]:
    """Returns the different words of a query that can find a text."""
    # The lower case of a letter may have a mark beside the letter, as in Turkish.
    lower = ("".join(filter(str.isalnum, word.lower())) for word in _split(text))
    words = list(dict.fromkeys(lower))
    telling = [word for word in words if word not in _STOP_WORDS]
    return (telling or words)[:_MAX_QUERY_WORDS]


def _split(text: str) -> list[str]:
    words = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text)):
        word = match[0][:_MAX_WORD]
        if word.isascii():
            words.append(word)
            parts = _PARTS_OF_NAME.findall(word)
            if len(parts) > 1:
                words += parts
        else:
            words += _split_unspaced(word)
    return words


def _split_unspaced(word: str) -> list[str]:
    """Divides scripts without spaces into overlapping pairs of characters."""
    pieces, end = [], 0
    for match in _UNSPACED.finditer(word):
        if match.start() > end:
            pieces.append(word[end : match.start()])
        run = match[0]
        pieces += [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
        end = match.end()
    if end < len(word):
        pieces.append(word[end:])
    return [piece for piece in pieces if piece.isalnum()]
