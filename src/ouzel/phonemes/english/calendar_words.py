"""Reads dates and times of day as English words."""

import re

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.number_words import read_cardinal, read_ordinal, read_year

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_SHORT = {month[:3]: month for month in MONTHS} | {"Sept": "September"}
_MONTH = rf"(?P<month>{'|'.join((*MONTHS, 'Sept', *_SHORT))})\b\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>[12]\d{3})"
_END = r"(?![\w]|[.,:]\d)"

_ISO = re.compile(
    rf"(?<![\w.-]){_YEAR}-(?P<number>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])"
    rf"(?:T(?=\d\d:)|(?![\w-]))"
)
_SLASHED = re.compile(
    rf"(?<![\w./-])(?P<first>\d{{1,2}})(?P<mark>[/.])(?P<second>\d{{1,2}})(?P=mark){_YEAR}{_END}"
)
_MONTH_FIRST = re.compile(rf"\b{_MONTH} {_DAY}(?:,? {_YEAR})?{_END}")
_DAY_FIRST = re.compile(rf"(?<![\w.,-])(?P<the>the )?{_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?{_END}")
_MONTH_ONLY = re.compile(rf"\b{_MONTH},? {_YEAR}{_END}")
_TIME = re.compile(
    r"(?<![\w.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
    r"(?:\.\d{1,9})?(?P<zone>Z\b)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\b(?:\.(?= [a-z\d(]))?)?(?![\w:]|\.\d)"
)
_HOUR = re.compile(
    r"(?<![\w.:])(?P<hour>1[0-2]|0?[1-9]) ?(?P<half>[AaPp])\.?[Mm]\b"
    r"(?:\.(?= [a-z\d(]))?(?!\w)"
)


def read_dates(text: str, dialect: Dialect) -> str:
    """Returns the text with dates as words. 3/4/2025 is the fourth of March in American English."""

    def read(match: re.Match[str]) -> str:
        return _read_date(match, dialect)

    text = _ISO.sub(lambda match: _read_numeric(match, int(match["number"]), dialect), text)
    text = _SLASHED.sub(lambda match: _read_slashed(match, dialect), text)
    text = _MONTH_FIRST.sub(read, text)
    text = _DAY_FIRST.sub(read, text)
    return _MONTH_ONLY.sub(
        lambda match: f"{_name(match['month'])} {read_year(match['year'], dialect)}", text
    )


def read_times(text: str) -> str:
    """Returns the text with times of day as words."""
    text = _TIME.sub(_read_time, text)
    return _HOUR.sub(lambda match: f"{_read_hour(match)} {match['half'].upper()} M", text)


def _name(month: str) -> str:
    return _SHORT.get(month, month)


def _read_date(match: re.Match[str], dialect: Dialect) -> str:
    return _say(_name(match["month"]), match["day"], match["year"], dialect)


def _read_numeric(match: re.Match[str], month: int, dialect: Dialect) -> str:
    words = _say(MONTHS[month - 1], match["day"], match["year"], dialect)
    return f"{words} " if match[0].endswith("T") else words


def _read_slashed(match: re.Match[str], dialect: Dialect) -> str:
    first, second = int(match["first"]), int(match["second"])
    has_month_first = dialect is Dialect.AMERICAN and match["mark"] == "/"
    month, day = (first, second) if has_month_first else (second, first)
    if month > 12 and day <= 12:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return _say(MONTHS[month - 1], str(day), match["year"], dialect)


def _say(month: str, day: str, year: str | None, dialect: Dialect) -> str:
    ordinal = read_ordinal(day)
    words = f"{month} {ordinal}"
    if dialect is Dialect.BRITISH:
        words = f"the {ordinal} of {month}"
    return f"{words}, {read_year(year, dialect)}" if year else words


def _read_time(match: re.Match[str]) -> str:
    hour, minute, second = match["hour"], match["minute"], match["second"]
    words = read_cardinal(str(int(hour)))
    if minute != "00":
        words += f" oh {read_cardinal(minute[1])}" if minute[0] == "0" else ""
        words += f" {read_cardinal(minute)}" if minute[0] != "0" else ""
    elif second and second != "00":
        words += " zero"
    elif not match["half"]:
        words += " o'clock" if 1 <= int(hour) <= 12 else " hundred hours"
    if second and second != "00":
        words += f" and {read_cardinal(str(int(second)))} seconds"
    if match["half"]:
        words += f" {match['half'].upper()} M"
    return f"{words} UTC" if match["zone"] else words


def _read_hour(match: re.Match[str]) -> str:
    return read_cardinal(str(int(match["hour"])))
