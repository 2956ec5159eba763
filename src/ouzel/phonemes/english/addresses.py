"""Reads addresses of web pages, e-mail and files as words."""

import re

_MAX_READ_CHARS = 200
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_URL = re.compile(r"\b(?:https?|ftp|wss?)://[^\s<>\"“”()]{1,2000}", re.I)
_DOMAINS = "com|org|net|edu|gov|io|ai|dev|co|uk|de|fr|es|it|eu|info|app|me|tv"
_DOMAIN = re.compile(
    rf"(?<![\w.@/-])(?:www\.)?(?:[a-z\d](?:[a-z\d-]{{0,62}})\.){{1,5}}(?:{_DOMAINS})\b(?!\.?\w)"
    r"(?:/[^\s<>\"“”()]{0,500})?",
    re.I,
)
_FINAL_MARKS = re.compile(r"[.,;:!?'…]{1,20}$")
_PARTS = re.compile(r"[.@/:_?=&#%~+-]")
_NAMES = {
    ".": "dot",
    "@": "at",
    "/": "slash",
    ":": "colon",
    "_": "underscore",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "#": "hash",
    "%": "percent",
    "~": "tilde",
    "+": "plus",
    "-": "dash",
}


def read_addresses(text: str) -> str:
    """Returns the text with addresses as words: a.b@example.com is a dot b at example dot com."""
    text = _EMAIL.sub(lambda match: _spell(match[0]), text)
    text = _URL.sub(_read_url, text)
    return _DOMAIN.sub(lambda match: _spell(match[0]), text)


def _read_url(match: re.Match[str]) -> str:
    return _spell(match[0].partition("://")[2])


def _spell(address: str) -> str:
    """Names the marks of an address. A long address ends with its host and "and so on"."""
    final = _FINAL_MARKS.search(address)
    marks = final[0] if final else ""
    address = address[: len(address) - len(marks)].rstrip("/")
    if address.lower().startswith("www."):
        address = address[len("www.") :]
    if len(address) > _MAX_READ_CHARS:
        address, rest = address.split("/", 1)[0][:_MAX_READ_CHARS], " and so on"
    else:
        rest = ""
    return _PARTS.sub(lambda mark: f" {_NAMES[mark[0]]} ", address) + rest + marks
