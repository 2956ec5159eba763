"""Reads amounts of money, percentages and measures as English words."""

import re

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.number_words import read_number

NUMBER = r"(?P<number>(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:\.\d{1,15})?)"
START = r"(?<![\w.,])(?P<minus>-)?"
_CURRENCIES = {  # one, many, a hundredth, many hundredths
    "$": ("dollar", "dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₽": ("rouble", "roubles", "kopeck", "kopecks"),
    "₩": ("won", "won", "jeon", "jeon"),
    "₿": ("bitcoin", "bitcoins", "", ""),
}
_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_PREFIXES = {
    "US$": "US dollars",
    "C$": "Canadian dollars",
    "A$": "Australian dollars",
    "HK$": "Hong Kong dollars",
}
_SCALES = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "bn": "billion",
    "b": "billion",
    "B": "billion",
    "tn": "trillion",
    "T": "trillion",
}
_SCALE = r"(?: ?(?P<scale>thousand|million|billion|trillion|bn|tn|[kKmMbBT])\b)?"
_SIGN = f"[{''.join(_CURRENCIES)}]"
_BEFORE = re.compile(
    rf"(?<![\w.])(?P<minus>-)?(?P<sign>(?:US|HK|C|A)\$|{_SIGN}) ?(?P<late>-)?{NUMBER}{_SCALE}"
)
_AFTER = re.compile(
    rf"{START}{NUMBER}(?: (?P<scale>thousand|million|billion|trillion))? ?"
    rf"(?P<sign>{_SIGN}|(?:{'|'.join(_CODES)})\b)"
)
_PERCENT = re.compile(rf"{START}{NUMBER} ?(?P<sign>[%‰])(?! ?[\d(])")
_UNITS = {  # one, many
    "km": ("kilometer", ""),
    "cm": ("centimeter", ""),
    "mm": ("millimeter", ""),
    "µm": ("micrometer", ""),
    "μm": ("micrometer", ""),
    "nm": ("nanometer", ""),
    "m": ("meter", ""),
    "mi": ("mile", ""),
    "ft": ("foot", "feet"),
    "yd": ("yard", ""),
    "kg": ("kilogram", ""),
    "mg": ("milligram", ""),
    "g": ("gram", ""),
    "lb": ("pound", ""),
    "lbs": ("pound", ""),
    "oz": ("ounce", ""),
    "L": ("liter", ""),
    "l": ("liter", ""),
    "ml": ("milliliter", ""),
    "mL": ("milliliter", ""),
    "ms": ("millisecond", ""),
    "µs": ("microsecond", ""),
    "μs": ("microsecond", ""),
    "ns": ("nanosecond", ""),
    "s": ("second", ""),
    "sec": ("second", ""),
    "secs": ("second", ""),
    "min": ("minute", ""),
    "mins": ("minute", ""),
    "h": ("hour", ""),
    "hr": ("hour", ""),
    "hrs": ("hour", ""),
    "Hz": ("hertz", "hertz"),
    "kHz": ("kilohertz", "kilohertz"),
    "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"),
    "kB": ("kilobyte", ""),
    "KB": ("kilobyte", ""),
    "MB": ("megabyte", ""),
    "GB": ("gigabyte", ""),
    "TB": ("terabyte", ""),
    "PB": ("petabyte", ""),
    "KiB": ("kibibyte", ""),
    "MiB": ("mebibyte", ""),
    "GiB": ("gibibyte", ""),
    "TiB": ("tebibyte", ""),
    "kbps": ("kilobit per second", "kilobits per second"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "W": ("watt", ""),
    "kW": ("kilowatt", ""),
    "MW": ("megawatt", ""),
    "kWh": ("kilowatt hour", ""),
    "V": ("volt", ""),
    "px": ("pixel", ""),
    "dpi": ("dot per inch", "dots per inch"),
    "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"),
    "mph": ("mile per hour", "miles per hour"),
    "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"),
    "°": ("degree", ""),
}
_RATES = {"h": "hour", "hr": "hour", "s": "second", "min": "minute", "day": "day", "kg": "kilogram"}
_UNIT = "|".join(sorted(map(re.escape, _UNITS), key=len, reverse=True))
_MEASURE = re.compile(
    rf"{START}{NUMBER}[ -]?(?P<unit>{_UNIT})(?P<power>[²³])?(?:/(?P<rate>{'|'.join(_RATES)}))?"
    r"(?![\w'’/])"
)


def read_quantities(text: str, dialect: Dialect) -> str:
    """Returns the text with amounts of money, percentages and measures as words."""

    def read_money(match: re.Match[str]) -> str:
        return _read_money(match, dialect)

    def read_percent(match: re.Match[str]) -> str:
        sign = "percent" if match["sign"] == "%" else "per mille"
        return f"{_read(match, dialect)} {sign}"

    text = _BEFORE.sub(read_money, text)
    text = _AFTER.sub(read_money, text)
    text = _PERCENT.sub(read_percent, text)
    return _MEASURE.sub(lambda match: _read_measure(match, dialect), text)


def _read(match: re.Match[str], dialect: Dialect) -> str:
    minus = "minus " if match["minus"] else ""
    return minus + read_number(match["number"], dialect)


def _read_money(match: re.Match[str], dialect: Dialect) -> str:
    sign, number, scale = match["sign"], match["number"], match["scale"]
    late_minus = "minus " if match.groupdict().get("late") else ""
    one, many, cent, cents = _CURRENCIES[_CODES.get(sign, sign)[-1]]
    many = _PREFIXES.get(sign, many)
    words = late_minus + _read(match, dialect)
    if scale:
        return f"{words} {_SCALES.get(scale, scale)} {many}"
    whole, _, decimals = number.replace(",", "").partition(".")
    if len(decimals) != 2 or not cents:
        return f"{words} {one if number == '1' and sign not in _PREFIXES else many}"
    parts = []
    if int(whole) or decimals == "00":
        minus = "minus " if match["minus"] or late_minus else ""
        unit = one if whole == "1" and sign not in _PREFIXES else many
        parts.append(f"{minus}{read_number(whole, dialect)} {unit}")
    if decimals != "00":
        below = decimals.lstrip("0")
        parts.append(f"{read_number(below, dialect)} {cent if below == '1' else cents}")
    return " and ".join(parts)


def _read_measure(match: re.Match[str], dialect: Dialect) -> str:
    one, many = _UNITS[match["unit"]]
    unit = one if match["number"] == "1" else many or f"{one}s"
    if dialect is Dialect.BRITISH:
        unit = unit.replace("meter", "metre").replace("liter", "litre")
    if match["power"]:
        unit = f"{'square' if match['power'] == '²' else 'cubic'} {unit}"
    rate = f" per {_RATES[match['rate']]}" if match["rate"] else ""
    return f"{_read(match, dialect)} {unit}{rate}"
