"""What a grammar says of a text is brought into how the text is written within a JSON string.

Each character has one spelling there: itself, or its short escape. So what two parts say of neighbouring texts, and
which of several lexemes is the longest, is the same in both forms.
"""

import json
import re
import unicodedata
from collections.abc import Iterable

from ouzel.grammar.errors import GrammarError

_ESCAPED = '"\\\n\r\t\b\f'  # what has a short escape
_CONTROLS = tuple(map(chr, range(0x20)))
_UNESCAPED = r"[^\x22\x5C\x00-\x1F\x7F]"
_NO_CHAR = r"\U0010ffff"  # stands in classes, which must not be empty
_CODE = re.compile(r"\\[xu]\{?([0-9A-Fa-f]+)\}?")
_PROPERTY = re.compile(r"\\([pP])(?:\{([^{}]+)\}|([A-Z]))")
_INNER_CLASS = re.compile(r"(?<=.)\[\^[^\]]*\]")  # `[\s\S]` is written with one


def json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def json_characters(expression: str) -> str:
    """Returns what the characters of an expression for a single one look like. Raises GrammarError."""
    if expression.startswith(("[", "\\p", "\\P")):
        escapes = [_escape(char) for char in _members(expression, _ESCAPED)]
        return f"(?:{'|'.join([f'[{expression}&&{_UNESCAPED}]', *escapes])})"
    same = _members(expression, (*_ESCAPED, *_CONTROLS))
    return _escape(same[0]) if same else expression


def _escape(char: str) -> str:
    return f"(?-i:{re.escape(json_text(char))})"  # a letter in it has one case


def _members(expression: str, chars: Iterable[str]) -> list[str]:
    """Returns those of the characters that the expression, of a class or of a single one, matches."""
    body = _PROPERTY.sub(_listed, expression)
    body = _CODE.sub(lambda code: f"\\U{int(code[1], 16):08x}", body)
    body = body if body.startswith("[") else f"[{body}]"
    inner = _INNER_CLASS.findall(body)
    is_negated = body.startswith("[^")
    plain = "[" + _NO_CHAR + _INNER_CLASS.sub("", body).removeprefix("[").removeprefix("^")
    try:
        matches = re.compile("|".join([plain, *inner])).fullmatch
    except re.error as error:
        raise GrammarError(f"{expression} is not supported in a JSON string: {error}") from error
    return [char for char in chars if (matches(char) is None) is is_negated]


def _listed(match: re.Match[str]) -> str:
    """Lists those of the characters with escapes that have the property, which must be a general category."""
    name = match[2] or match[3]
    if not re.fullmatch("[A-Z][a-z]?", name):
        raise GrammarError(f"{match[0]} is not supported in a JSON string")
    has = [char for char in _ESCAPED if unicodedata.category(char).startswith(name) == (match[1] == "p")]
    return "".join(f"\\U{ord(char):08x}" for char in has)
