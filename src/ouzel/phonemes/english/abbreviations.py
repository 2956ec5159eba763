"""Reads abbreviations as words, before full stops are marks of punctuation."""

import re

from ouzel.phonemes.english.calendar_words import MONTHS

_TITLES = {  # before a name
    "Mr": "Mister",
    "Mrs": "Missus",
    "Ms": "Miz",
    "Messrs": "messers",
    "Prof": "Professor",
    "Gen": "General",
    "Sen": "Senator",
    "Rep": "Representative",
    "Gov": "Governor",
    "Capt": "Captain",
    "Lt": "Lieutenant",
    "Col": "Colonel",
    "Sgt": "Sergeant",
    "Rev": "Reverend",
    "Hon": "Honorable",
    "Dr": "Doctor",
    "St": "Saint",
    "Mt": "Mount",
    "Ft": "Fort",
    "Fr": "Father",
}
_PLACES = {"Dr": "Drive", "St": "Street", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road"}
_COUNTED = {  # before a number
    "no": "number",
    "nos": "numbers",
    "fig": "figure",
    "figs": "figures",
    "vol": "volume",
    "ch": "chapter",
    "sec": "section",
    "eq": "equation",
    "p": "page",
    "pp": "pages",
    "art": "article",
}
_PLAIN = {  # their full stop ends no sentence by itself
    "e.g": "for example",
    "i.e": "that is",
    "etc": "et cetera",
    "vs": "versus",
    "approx": "approximately",
    "dept": "department",
    "est": "established",
    "incl": "including",
    "Inc": "Incorporated",
    "Ltd": "Limited",
    "Corp": "Corporation",
    "Bros": "Brothers",
    "Jr": "Junior",
    "Sr": "Senior",
    "Assn": "Association",
    "cf": "compare",
    "et al": "and others",
    "a.k.a": "also known as",
    "w.r.t": "with respect to",
    "min": "minimum",
    "max": "maximum",
    "avg": "average",
    "misc": "miscellaneous",
    "temp": "temperature",
    "govt": "government",
    "tel": "telephone",
    "ext": "extension",
}
_BARE = {
    "e.g": "for example",
    "i.e": "that is",
    "vs": "versus",
    "etc": "et cetera",
    "aka": "also known as",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CALENDAR = {
    **{month[:3]: month for month in MONTHS if month != "May"},
    "Sept": "September",
    **{day[:3]: day for day in _DAYS},
    "Tues": "Tuesday",
    "Thurs": "Thursday",
}


def _join(words: dict[str, str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_TITLE = re.compile(rf"\b({_join(_TITLES)})(?:\.|(?<=Mr|Dr|Ms|St)|(?<=Mrs)) (?=[A-Z]|and )")
_PLACE = re.compile(rf"(?<=\w )({_join(_PLACES)})\.(?!\w)( [A-Z])?")
_NUMBERED = re.compile(rf"\b({_join(_COUNTED)})\. ?(?=\d)", re.I)
_NUMERO = re.compile(r"\bN[oº°]\.? ?(?=\d)|№ ?(?=\d)")
_POINTED = re.compile(rf"(?<![\w.])({_join(_PLAIN)})\.(?!\w)(?P<end> [A-Z]|$)?", re.I)
_UNPOINTED = re.compile(rf"(?<![\w.-])({_join(_BARE)})(?![\w'.-])")
_DATED = re.compile(rf"\b({_join(_CALENDAR)})\.(?!\w)")
_INITIALS = re.compile(r"(?<![\w.])((?:[A-Za-z]\.){2,8})(?P<end> [A-Z]|$)?(?!\w)")
_INITIAL = re.compile(r"(?<![\w.'])([A-Z])\.(?= [A-Z])")
_DEGREE = re.compile(r"\bPh\.? ?D\b\.?")
_WITH = re.compile(r"(?<!\w)w/(o\b|(?=[\s\w]))")
_LOWER_PLAIN = {key.lower(): words for key, words in _PLAIN.items()}


def read_abbreviations(text: str) -> str:
    """Returns the text with common abbreviations as words."""
    text = _DEGREE.sub("PHD", text)
    text = _TITLE.sub(lambda match: f"{_TITLES[match[1]]} ", text)
    text = _PLACE.sub(lambda match: _PLACES[match[1]] + (f".{match[2]}" if match[2] else ""), text)
    text = _NUMBERED.sub(lambda match: f"{_COUNTED[match[1].lower()]} ", text)
    text = _NUMERO.sub("number ", text)
    text = _POINTED.sub(_read_pointed, text)
    text = _UNPOINTED.sub(lambda match: _BARE[match[1]], text)
    text = _DATED.sub(lambda match: _CALENDAR[match[1]], text)
    text = _INITIALS.sub(_join_initials, text)
    text = _INITIAL.sub(r"\1", text)
    return _WITH.sub(lambda match: "without " if match[1] else "with ", text)


def _read_pointed(match: re.Match[str]) -> str:
    """Keeps the full stop that also ends a sentence."""
    if match[1].isupper():  # EST. is a time zone
        return match[0]
    words = _LOWER_PLAIN[match[1].lower()]
    end: str | None = match["end"]
    introduces = words in ("for example", "that is", "versus", "compare")
    return words + ("" if end is None else end if introduces else f".{end}")


def _join_initials(match: re.Match[str]) -> str:
    letters = match[1].replace(".", "").upper()
    end: str | None = match["end"]
    if end is None:
        return letters
    ends_sentence = not end or letters in ("AM", "PM")
    return f"{letters}.{end}" if ends_sentence else f"{letters}{end}"
