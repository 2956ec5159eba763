"""Divides a text into clauses and the marks between them."""

import re
from dataclasses import dataclass

MAX_CLAUSE_CHARS = 300  # espeak-ng divides longer clauses by itself
_OPENING = "(“"
# A mark between digits belongs to a number: 3,14 or 10:30.
_MARK = re.compile(r"(?<!\d)[;:,.]|[;:,.](?!\d)|[!?—…\"()“”]")
_VOWEL_SIGNS = "\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0955-\u0957\u0962\u0963"  # \w has none
_UNREAD = re.compile(rf"[^\w\s{_VOWEL_SIGNS}'%€$£&@+°/.,:-]|_")
_LONE = re.compile(
    rf"(?<![\w{_VOWEL_SIGNS}])[-'/.,:]{{1,9}}(?!\d)|[-'/.,:]{{1,9}}(?![\w{_VOWEL_SIGNS}])"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A clause, or one mark of the vocabulary."""

    text: str
    is_mark: bool


def divide_clauses(text: str) -> list[Piece]:
    """Returns the clauses and marks of a plain text in their order.

    A clause has a letter or a digit, and at most MAX_CLAUSE_CHARS characters.
    """
    pieces: list[Piece] = []
    start = 0
    for mark in _MARK.finditer(text):
        pieces += _make_clauses(text[start : mark.start()])
        pieces.append(Piece(mark[0], is_mark=True))
        start = mark.end()
    return pieces + _make_clauses(text[start:])


def _make_clauses(text: str) -> list[Piece]:
    text = _LONE.sub(" ", _UNREAD.sub(" ", text))
    clauses: list[str] = []
    for word in text.split():
        for start in range(0, len(word), MAX_CLAUSE_CHARS):
            part = word[start : start + MAX_CLAUSE_CHARS]
            if clauses and len(clauses[-1]) + len(part) < MAX_CLAUSE_CHARS:
                clauses[-1] += f" {part}"
            else:
                clauses.append(part)
    return [
        Piece(clause, is_mark=False) for clause in clauses if any(char.isalnum() for char in clause)
    ]


def join_pieces(pieces: list[Piece]) -> str:
    """Returns the pieces in one line: a space before an opening mark, after a closing mark."""
    joined: list[str] = []
    is_open = False  # within straight quotation marks
    needs_space = False
    for piece in pieces:
        opens = piece.text in _OPENING or (piece.text == '"' and not is_open)
        if piece.text == '"':
            is_open = not is_open
        if needs_space and (opens or not piece.is_mark):
            joined.append(" ")
        joined.append(piece.text)
        needs_space = not (piece.is_mark and opens)
    return "".join(joined).strip()
