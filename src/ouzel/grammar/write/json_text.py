"""Converts expressions about a text to expressions about its spelling in a JSON string.

Each character has one spelling there: itself, its short escape, or a long escape. So neighbouring
parts of a lexeme match the same texts in both forms. A class that admits printed characters
excludes control characters without a short escape: a model that begins a long escape would be
forced to complete it. Other classes admit them.
"""

import json
import re
import unicodedata
from collections.abc import Iterable

from ouzel.grammar.errors import GrammarError

_ESCAPED = '"\\\n\r\t\b\f'  # characters with a short escape
_CONTROLS = tuple(map(chr, range(0x20)))
_RARE = tuple(char for char in _CONTROLS if char not in _ESCAPED)
_PRINTED = tuple(map(chr, range(0x20, 0x7F)))
_UNESCAPED = r"[^\x22\x5C\x00-\x1F]"
_NO_CHAR = r"\U0010ffff"  # stands in classes, which must not be empty
_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9A-Fa-f]{2})|u(?P<u>[0-9A-Fa-f]{4})|[xu]\{(?P<code>[0-9A-Fa-f]+)\}"
    r"|(?P<sign>[pP])(?:\{(?P<property>[^{}]+)\}|(?P<letter>[A-Z]))|.)",
    re.DOTALL,
)
_INNER_CLASS = re.compile(r"(?<=.)\[\^[^\]]*\]")  # `[\s\S]` is written with such a class


def json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def json_characters(expression: str) -> str:
    """Returns the expression for the spellings of one character's expression.

    Raises GrammarError.
    """
    if expression.startswith(("[", "\\p", "\\P")):
        chars = _ESCAPED if _members(expression, _PRINTED) else (*_ESCAPED, *_RARE)
        escapes = [_escape(char) for char in _members(expression, chars)]
        return f"(?:{'|'.join([f'[{expression}&&{_UNESCAPED}]', *escapes])})"
    same = _members(expression, (*_ESCAPED, *_CONTROLS))
    return _escape(same[0]) if same else expression


def _escape(char: str) -> str:
    return f"(?-i:{re.escape(json_text(char))})"  # letters in an escape have one case


def _members(expression: str, chars: Iterable[str]) -> list[str]:
    """Returns the members of `chars` that match a regular expression for one character."""
    body = _ESCAPE.sub(_in_python, expression)
    body = body if body.startswith("[") else f"[{body}]"
    inner = _INNER_CLASS.findall(body)
    is_negated = body.startswith("[^")
    plain = _INNER_CLASS.sub("", body).removesuffix("]") + _NO_CHAR + "]"
    plain = "[" + plain.removeprefix("[").removeprefix("^")
    try:
        matches = re.compile("|".join([plain, *inner])).fullmatch
    except re.error as error:
        raise GrammarError(f"{expression} is not supported in a JSON string: {error}") from error
    return [char for char in chars if (matches(char) is None) is is_negated]


def _in_python(match: re.Match[str]) -> str:
    if code := match["x"] or match["u"] or match["code"]:
        return f"\\U{int(code, 16):08x}"
    return _listed(match) if match["sign"] else match[0]


def _listed(match: re.Match[str]) -> str:
    """Lists the examined characters that have the property, which must be a general category."""
    name = match["property"] or match["letter"]
    if not re.fullmatch("[A-Z][a-z]?", name):
        raise GrammarError(f"{match[0]} is not supported in a JSON string")
    is_in = match["sign"] == "p"
    has = [
        char
        for char in (*_CONTROLS, *_PRINTED)
        if unicodedata.category(char).startswith(name) == is_in
    ]
    return "".join(f"\\U{ord(char):08x}" for char in has)
