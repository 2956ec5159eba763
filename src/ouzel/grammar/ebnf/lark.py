"""Rewrites the marks in a client's Lark grammar as numbers; the rest stays."""

import re

from ouzel.grammar.caps import MAX_COMBINED_PATTERNS, MAX_RULES, check_at_most
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.spelling import Spelling

_START = re.compile(r"^\s*\??start\s*(?:\[[^\]\n]*\])?\s*:(?!:=)", re.M)
_PIECE = re.compile(
    r"""(?P<kept>"(?:[^"\\\n]|\\.)*"|/(?![/*])(?:[^/\\\n]|\\.)+/|//[^\n]*|\#[^\n]*)|(?P<mark><[^<>\s]+>)""",
    re.VERBOSE,
)


def is_lark(text: str) -> bool:
    return bool(_START.search(text)) and "::=" not in text


def spell_marks(text: str, spelling: Spelling, path: str) -> str:
    """Returns the text with its marks as numbers. Raises GrammarError."""
    check_at_most(f"the number of lines of {path}", text.count("\n"), MAX_RULES)
    check_at_most(
        f"the number of & in {path}", _PIECE.sub("", text).count("&"), MAX_COMBINED_PATTERNS
    )
    return _PIECE.sub(lambda piece: _with_numbers(piece, spelling, path), text)


def _with_numbers(piece: re.Match[str], spelling: Spelling, path: str) -> str:
    """Writes a mark by its number, because the engine's tokenizer has other names for marks.

    An open range is refused: it would match padding.
    """
    mark = piece["mark"]
    if mark is None:
        return piece[0]
    if mark.startswith("<["):
        if "^" in mark or "*" in mark:
            raise GrammarError(f"{path} has {mark}; name the tokens that may come, as in <[5-9]>")
        return mark
    return f"<[{spelling.token_id(mark, path)}]>"
