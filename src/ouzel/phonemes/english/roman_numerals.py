"""Reads Roman numerals after the few words and names that have them."""

import re

from ouzel.phonemes.english.number_words import read_cardinal, read_ordinal

_NUMERAL = r"(?P<numeral>X{0,3}(?:IX|IV|V?I{0,3}))"
_PARTS = (
    *("Chapter", "Part", "Volume", "Act", "Scene", "Section", "Book", "Phase", "Type", "Title"),
    *("Article", "Appendix", "War", "Level", "Class", "Stage", "Grade", "Super Bowl", "Apollo"),
)
_RULERS = (
    *("Henry", "Louis", "Elizabeth", "George", "Charles", "Edward", "James", "William", "Richard"),
    *("Philip", "Napoleon", "Pope", "Paul", "Benedict", "Pius", "Francis", "Frederick", "Peter"),
    *("Catherine", "Nicholas", "Alexander", "Ivan", "Gustav", "Ferdinand", "Leo", "Mary"),
)
_COUNTED = re.compile(rf"\b(?P<word>{'|'.join(_PARTS)}) {_NUMERAL}(?![\w'-])", re.I)
_RULER = re.compile(rf"\b(?P<word>{'|'.join(_RULERS)}) {_NUMERAL}(?![\w-])(?! [a-z]+m\b)")
_WORLD_WAR = re.compile(r"\bWW(I{1,3})\b")
_VALUES = {"X": 10, "V": 5, "I": 1}


def read_roman_numerals(text: str) -> str:
    """Returns "Chapter IV" as "Chapter four", and "Henry VIII" as "Henry the eighth"."""
    text = _WORLD_WAR.sub(lambda match: f"World War {read_cardinal(str(len(match[1])))}", text)
    text = _COUNTED.sub(lambda match: _read(match, ""), text)
    return _RULER.sub(lambda match: _read(match, "the "), text)


def _read(match: re.Match[str], article: str) -> str:
    numeral: str = match["numeral"]
    is_pronoun = numeral == "I" and article  # "when George I met"
    if not numeral or not numeral.isupper() or is_pronoun:
        return match[0]
    number = str(_count(numeral))
    words = read_ordinal(number) if article else read_cardinal(number)
    return f"{match['word']} {article}{words}"


def _count(numeral: str) -> int:
    """Adds the values; a smaller value before a larger one is subtracted."""
    values = [_VALUES[char] for char in numeral]
    following = [*values[1:], 0]
    pairs = zip(values, following, strict=True)
    return sum(-value if value < after else value for value, after in pairs)
