"""Reads numbers as English words."""

from ouzel.phonemes.english.dialect import Dialect

MAX_DIGITS = 15  # longer numbers are read digit by digit
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen"),
    *("fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ("", " thousand", " million", " billion", " trillion")
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}


def read_digits(digits: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in digits)


def read_cardinal(digits: str, dialect: Dialect = Dialect.AMERICAN) -> str:
    """Reads an integer; leading zeros and more than MAX_DIGITS digits are read one by one."""
    if len(digits) > MAX_DIGITS or (len(digits) > 1 and digits[0] == "0"):
        return read_digits(digits)
    number = int(digits)
    if number == 0:
        return "zero"
    joint = " and " if dialect is Dialect.BRITISH else " "
    words = ""
    for exponent in range(len(_SCALES) - 1, -1, -1):
        group = number // 1000**exponent % 1000
        if group == 0:
            continue
        glue = " "
        if words and exponent == 0 and group < 100:
            glue = joint
        words += (glue if words else "") + _read_group(group, joint) + _SCALES[exponent]
    return words


def _read_group(number: int, joint: str) -> str:
    """Reads a number from 1 to 999."""
    hundreds, rest = divmod(number, 100)
    if hundreds == 0:
        return _read_below_hundred(rest)
    words = f"{DIGITS[hundreds]} hundred"
    return f"{words}{joint}{_read_below_hundred(rest)}" if rest else words


def _read_below_hundred(number: int) -> str:
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return _TEENS[number - 10]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f" {DIGITS[ones]}" if ones else "")


def read_ordinal(digits: str, dialect: Dialect = Dialect.AMERICAN) -> str:
    """Reads the number as a place in an order: 21 is twenty first."""
    words, _, last = read_cardinal(digits.lstrip("0") or "0", dialect).rpartition(" ")
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last = f"{last}th" if not last.endswith("t") else f"{last}h"
    return f"{words} {last}".strip()


def read_year(digits: str, dialect: Dialect = Dialect.AMERICAN) -> str:
    """Reads four digits as a year: 1905 is nineteen oh five, 2007 is two thousand seven."""
    century, rest = int(digits[:2]), int(digits[2:])
    if digits[1:3] == "00" or century < 10:
        return read_cardinal(digits, dialect)
    if rest == 0:
        return f"{_read_below_hundred(century)} hundred"
    below = f"oh {DIGITS[rest]}" if rest < 10 else _read_below_hundred(rest)
    return f"{_read_below_hundred(century)} {below}"


def read_number(text: str, dialect: Dialect = Dialect.AMERICAN) -> str:
    """Reads digits with commas between thousands and a decimal point."""
    whole, point, decimals = text.replace(",", "").partition(".")
    words = read_cardinal(whole or "0", dialect)
    return f"{words} point {read_digits(decimals)}" if point and decimals else words


def make_plural(words: str) -> str:
    """Returns the plural of a number's last word: nineties, hundreds."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"
