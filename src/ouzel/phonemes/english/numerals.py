"""Reads all numerals that are no date, time or quantity as English words."""

import re

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.number_words import (
    MAX_DIGITS,
    make_plural,
    read_cardinal,
    read_digits,
    read_number,
    read_ordinal,
    read_year,
)
from ouzel.phonemes.english.quantities import NUMBER

_LONG = re.compile(rf"(?<!\d)\d{{{MAX_DIGITS + 1},}}")
_PHONE = re.compile(
    r"(?<![\w-])(?P<code>\+?\d{1,3}[ -])?(?:\((\d{3})\) ?|(\d{3})[-.])(\d{3})[-.](\d{4})(?![\w-])"
)
_SHORT_PHONE = re.compile(r"(?<![\w-])(\d{3})-(\d{4})(?![\w-])")
_ORDINAL = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3}){1,3}|\d{1,15})(?:st|nd|rd|th)\b", re.I)
_DECADE = re.compile(r"(?<![\w.])(?:([12]\d)|'|(?<=the ))(\d0)'?s\b")
_FRACTION = re.compile(r"(?<![\w./])(?:(\d{1,4}) )?(\d{1,2})/(\d{1,3})(?![\w/]|\.\d)")
_RANGE = re.compile(
    r"(?<![\w.,–-])(\d{1,3}(?:,\d{3}){1,3}|\d{1,9}(?:\.\d{1,6})?) ?[-–] ?"
    r"(\d{1,3}(?:,\d{3}){1,3}|\d{1,9}(?:\.\d{1,6})?)(?![\w–-]|[.,]\d)"
)
_VERSION = re.compile(r"(?<![\d.])\d{1,9}(?:\.\d{1,9}){2,9}(?![\d.]*\d)")
_YEAR = re.compile(
    r"(?P<cue>\b(?:in|since|from|by|of|until|till|before|after|year|to|around|circa|early|late|"
    r"mid|spring|summer|autumn|fall|winter|between|and) )?"
    r"(?<![\w.,$£€-])(?P<year>1[1-9]\d\d|20\d\d)(?![\w%°]|[.,]\d|-\d)"
)
_HYPHEN = re.compile(r"(?<=[A-Za-z])[-_](?=\d)|(?<=\d)[-_](?=[A-Za-z\d])")
_MINUS = re.compile(r"(?<![\w)])-(?=\d)")
_NUMBER = re.compile(rf"(?<!\d){NUMBER}")
_DENOMINATORS = {2: "half", 4: "quarter"}


def read_long_numbers(text: str) -> str:
    """Returns the text with long runs of digits as words. No other pattern sees such a run."""
    return _LONG.sub(lambda match: f" {read_digits(match[0])} ", text)


def read_decades(text: str) -> str:
    """Returns the text with decades as words; without them "1990s" would be a time in seconds."""
    return _DECADE.sub(_read_decade, text)


def read_numerals(text: str, dialect: Dialect) -> str:
    """Returns the text without digits."""
    text = _PHONE.sub(_read_phone, text)
    text = _SHORT_PHONE.sub(lambda match: ", ".join(map(read_digits, match.groups())), text)
    text = _ORDINAL.sub(lambda match: read_ordinal(match[1].replace(",", ""), dialect), text)
    text = _FRACTION.sub(lambda match: _read_fraction(match, dialect), text)
    text = _RANGE.sub(_read_range, text)
    text = _VERSION.sub(lambda match: " point ".join(map(_read_part, match[0].split("."))), text)
    text = _HYPHEN.sub(" ", text)
    text = _YEAR.sub(lambda match: _read_year(match, dialect), text)
    text = _MINUS.sub("minus ", text)
    return _NUMBER.sub(lambda match: f" {read_number(match[0], dialect)} ", text)


def _read_phone(match: re.Match[str]) -> str:
    groups = [match["code"] or "", *match.groups()[1:]]
    digits = [re.sub(r"\D", "", group) for group in groups if group]
    return ", ".join(map(read_digits, digits))


def _read_decade(match: re.Match[str]) -> str:
    century, decade = match[1], match[2]
    if decade == "00":
        return make_plural(read_year(f"{century}00")) if century else "two thousands"
    words = make_plural(read_cardinal(decade))
    return f"{read_cardinal(century)} {words}" if century else words


def _read_fraction(match: re.Match[str], dialect: Dialect) -> str:
    whole, above, below = match[1], int(match[2]), int(match[3])
    if not 0 < above < below or not (below <= 10 or below in (12, 16, 20, 100)):
        separator = "slash" if match[3] != "7" else ""  # 24/7
        words = f"{read_cardinal(match[2])} {separator} {read_cardinal(match[3])}"
        return f"{read_cardinal(whole, dialect)} {words}" if whole else words
    name = _DENOMINATORS.get(below) or read_ordinal(str(below))
    if above > 1:
        name = f"{name}s"
    article = "a" if whole or below not in _DENOMINATORS else "one"
    words = f"{read_cardinal(str(above)) if above > 1 else article} {name}"
    return f"{read_cardinal(whole, dialect)} and {words}" if whole else words


def _read_range(match: re.Match[str]) -> str:
    """Returns the two numbers with "to" between them; other patterns read the numbers."""
    first, second = (float(number.replace(",", "")) for number in match.groups())
    return f"{match[1]} to {match[2]}" if first < second else f"{match[1]}, {match[2]}"


def _read_part(digits: str) -> str:
    return read_cardinal(digits)


def _read_year(match: re.Match[str], dialect: Dialect) -> str:
    year = match["year"]
    if match["cue"] is None and not "1900" <= year <= "2099" and not year.endswith("00"):
        return match[0]
    return (match["cue"] or "") + read_year(year, dialect)
