"""Makes a text of words and marks: every number, sign and address is read as words."""

import re

from ouzel.phonemes.english.abbreviations import read_abbreviations
from ouzel.phonemes.english.addresses import read_addresses
from ouzel.phonemes.english.calendar_words import read_dates, read_times
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.numerals import (
    read_decades,
    read_long_numbers,
    read_numerals,
)
from ouzel.phonemes.english.other_scripts import write_latin
from ouzel.phonemes.english.quantities import read_quantities
from ouzel.phonemes.english.roman_numerals import read_roman_numerals
from ouzel.phonemes.plain_text import make_plain

_SIGNS = {
    "&": "and",
    "+": "plus",
    "=": "equals",
    "@": "at",
    "%": "percent",
    "‰": "per mille",
    "°": "degrees",
    "×": "times",
    "÷": "divided by",
    "≈": "about",
    "≠": "is not equal to",
    "≤": "is at most",
    "≥": "is at least",
    "±": "plus or minus",
    "√": "square root of",
    "∞": "infinity",
    "→": "to",
    "²": "squared",
    "³": "cubed",
    "$": "dollars",
    "£": "pounds",
    "€": "euros",
    "¥": "yen",
    "₹": "rupees",
    "§": "section",
    "∑": "sum of",
    "∂": "partial",
}
_SIGN = re.compile(f"[{re.escape(''.join(_SIGNS))}]")
_HASH_NUMBER = re.compile(r"(?<![\w#])#(?=\d)")
_HASHTAG = re.compile(r"(?<![\w#])#(?=[A-Za-z])")
_SHARP = re.compile(r"(?<!\w)([ACDFG])#(?!\w)")
_ABOUT = re.compile(r"(?<!\w)[~≈] ?(?=\d)")
_COMPARED = re.compile(r"(?<=[\w)]) ?([<>]) ?(?=[\d$£€])|(?<!\w)([<>]) ?(?=[\d$£€])")
_MULTIPLIED = re.compile(r"(?<=\d) ?[x*×] ?(?=\d)")
_TIMES = re.compile(r"(?<=\d)[x×](?!\w)")
_SLASH = re.compile(r"(?<=\w)/(?=\w)")
_AND_OR = re.compile(r"\band/or\b", re.I)
_DASH = re.compile(r" (?:-{1,3}|–) |(?<=\w)--(?=\w)|–")
_DOTS = re.compile(r"\.{2,}|…+")
_REPEATED = re.compile(r"([;:,!?—…])(?: ?\1){1,}")
_LEFT_OVER = re.compile(r"[^\w\s;:,.!?—…\"()“”'-]|_")
_EMPTY = re.compile(r"\( ?\)")
_INNER_DOT = re.compile(r"(?<=[A-Za-z])\.(?=[A-Za-z])")


def normalise(text: str, dialect: Dialect) -> str:
    """Returns the text with letters, apostrophes, hyphens and marks of punctuation only."""
    text = read_long_numbers(make_plain(text))
    text = read_addresses(text)
    text = read_abbreviations(text)
    text = read_dates(text, dialect)
    text = read_times(text)
    text = read_decades(read_roman_numerals(text))
    text = _read_signs_of_numbers(text)
    text = read_quantities(text, dialect)
    text = read_numerals(text, dialect)
    text = _AND_OR.sub("and or", text)
    text = _SLASH.sub(" slash ", text)
    text = _INNER_DOT.sub(" dot ", text)
    text = _SIGN.sub(lambda match: f" {_SIGNS[match[0]]} ", text)
    text = _DASH.sub("—", text)
    text = _DOTS.sub("…", text)
    text = _EMPTY.sub(" ", text)
    text = _LEFT_OVER.sub(" ", write_latin(text))
    return " ".join(_REPEATED.sub(r"\1", text).split())


def _read_signs_of_numbers(text: str) -> str:
    text = _HASH_NUMBER.sub("number ", text)
    text = _SHARP.sub(r"\1 sharp", text)
    text = _HASHTAG.sub("hashtag ", text)
    text = _ABOUT.sub("about ", text)
    text = _COMPARED.sub(_read_comparison, text)
    text = _MULTIPLIED.sub(" by ", text)
    return _TIMES.sub(" times", text)


def _read_comparison(match: re.Match[str]) -> str:
    sign = match[1] or match[2]
    return f" {'less' if sign == '<' else 'more'} than "
