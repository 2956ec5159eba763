"""Divides a normalised text into words and marks."""

import re
from dataclasses import dataclass

_MAX_WORD_CHARS = 60
_LETTER = r"[^\W\d_]"
_TOKEN = re.compile(
    rf"'?{_LETTER}[^\W\d_̀-ͯ]{{0,{_MAX_WORD_CHARS}}}(?:['-]{_LETTER}{{1,{_MAX_WORD_CHARS}}}){{0,8}}'?"
    r"|[;:,.!?—…\"()“”]"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, possibly with hyphens and apostrophes, or a mark of punctuation."""

    text: str
    is_mark: bool


def divide_tokens(text: str) -> list[Token]:
    return [
        Token(found[0], is_mark=not any(char.isalpha() for char in found[0]))
        for found in _TOKEN.finditer(text)
    ]


def divide_camel_case(word: str) -> list[str]:
    """Returns the parts of a word such as OpenAI or getUserName."""
    return _CAMEL.split(word)
