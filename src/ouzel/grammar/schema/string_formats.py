"""Patterns of JSON Schema's `format` names, for bare text and where the engine's patterns are too
loose.
"""

_HEX = "[0-9a-fA-F]"
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"
_LEAP = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_MONTH_DAY = (
    f"(?:02-{_DAY}|(?:0[469]|11)-(?:{_DAY}|29|30)|(?:0[13578]|1[02])-(?:{_DAY}|29|3[01]|30))"
)
_DATE = f"(?:[1-9][0-9]{{3}}-{_MONTH_DAY}|{_LEAP}-02-29)"
_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:Z|[+-]{_MINUTE})"
_CLOCK = "T(?:[0-9]+H(?:[0-9]+M)?(?:[0-9]+S)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DAYS = "(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)"

# the engine's patterns allow 61 seconds in any minute
INEXACT = frozenset(("date", "time", "date-time"))

PATTERNS = {
    "date": _DATE,  # years 1000 to 9999
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK}|[0-9]+W)",
    "email": rf"[a-zA-Z0-9_+-]+(?:\.[a-zA-Z0-9_+-]+)*@{_HOST}",
    "hostname": _HOST,
    "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
    "ipv6": f"(?:{_HEX}{{1,4}}:){{7}}{_HEX}{{1,4}}",  # no `::`
    "uuid": f"{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}",
    "uri": r"[a-zA-Z][a-zA-Z0-9+.-]*:[a-zA-Z0-9._~:?#@!$&'()*+,;=%\[\]/-]+",
}
