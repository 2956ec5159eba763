"""Makes pieces of the right length for the model out of the phonemes of sentences.

The first piece is short, so that its sound comes soon. Later sentences are joined: a Kokoro model
speaks 100 phonemes better than 5. They are not joined further, since other texts wait for a piece.
A piece does not pass a line break.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

_FIRST_LEN = 90  # phonemes of the first piece, if a clause ends before; else its first clause
_LEAST_FIRST_LEN = 20
_JOINED_LEN = 120  # sentences are joined up to this length
# Longer sentences are cut: each phoneme of the longest piece takes 5 MB of the engine's memory.
_LONGEST_LEN = 250


class Break(Enum):
    """The kind of break after a piece."""

    CUT = "cut"  # inside of a clause
    CLAUSE = "clause"
    SENTENCE = "sentence"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Piece:
    token_ids: tuple[int, ...]
    following: Break


@dataclass(frozen=True, slots=True)
class Marks:
    """The ids of tokens at which a sentence can be cut."""

    clauses: frozenset[int]  # commas, colons, dashes
    sentences: frozenset[int]
    spaces: frozenset[int]
    silent: frozenset[int]  # all marks without a sound

    def find_cut(self, token_ids: tuple[int, ...], begin: int, end: int) -> int | None:
        """Returns the place behind the last mark of a clause in [begin, end)."""
        return self._find(token_ids, range(end - 1, begin - 1, -1))

    def find_first_cut(self, token_ids: tuple[int, ...], begin: int) -> int | None:
        """Returns the place behind the first mark of a clause from `begin` on, before the end."""
        return self._find(token_ids, range(begin, len(token_ids) - 1))

    def _find(self, token_ids: tuple[int, ...], places: range) -> int | None:
        cuts = self.clauses | self.sentences
        return next((place + 1 for place in places if token_ids[place] in cuts), None)


class PieceMaker:
    """Takes sentences one after another, and gives pieces as soon as they are complete."""

    def __init__(self, marks: Marks, max_len: int) -> None:
        """`max_len` is the model's limit of a piece, in tokens."""
        self._marks = marks
        self._max_len = min(max_len, _LONGEST_LEN)
        self._open: tuple[int, ...] = ()  # joined sentences that may be joined with more
        self._following = Break.SENTENCE
        self._is_first = True

    def add(self, token_ids: tuple[int, ...], following: Break) -> Iterator[Piece]:
        """Takes a sentence and the break after it. A sentence of marks alone is left out."""
        is_spoken = any(each not in self._marks.silent for each in token_ids)
        parts = list(self._cut(token_ids, following)) if is_spoken else []
        for part in parts:
            is_short = len(self._open) + 1 + len(part.token_ids) <= self._join_len
            if self._open and not is_short:
                yield from self.finish()
            space = tuple(self._marks.spaces)[:1] if self._open else ()
            self._open += space + part.token_ids
            self._following = part.following
            is_enough = self._is_first and len(self._open) >= _LEAST_FIRST_LEN
            if is_enough or part.following in (Break.LINE, Break.CUT):
                yield from self.finish()
        if following is Break.LINE:
            self._following = Break.LINE
            yield from self.finish()

    def finish(self) -> Iterator[Piece]:
        """Yields the open piece."""
        if self._open:
            yield Piece(self._open, self._following)
            self._open, self._is_first = (), False

    @property
    def _join_len(self) -> int:
        return min(_JOINED_LEN, self._max_len)

    def _cut(self, token_ids: tuple[int, ...], following: Break) -> Iterator[Piece]:
        """Cuts a sentence: the first one early, and all at the model's limit."""
        if self._is_first and not self._open and len(token_ids) > _FIRST_LEN:
            end = self._marks.find_cut(token_ids, _LEAST_FIRST_LEN, _FIRST_LEN)
            end = end or self._marks.find_first_cut(token_ids, _FIRST_LEN)
            if end is not None and end <= self._max_len:
                yield Piece(token_ids[:end], self._name_break(token_ids[end - 1]))
                token_ids = self._strip(token_ids[end:])
        while len(token_ids) > self._max_len:
            end = self._marks.find_cut(token_ids, 1, self._max_len) or self._find_space(token_ids)
            yield Piece(token_ids[:end], self._name_break(token_ids[end - 1]))
            token_ids = self._strip(token_ids[end:])
        if token_ids:
            yield Piece(token_ids, following)

    def _find_space(self, token_ids: tuple[int, ...]) -> int:
        places = range(self._max_len - 1, 0, -1)
        found = (each for each in places if token_ids[each] in self._marks.spaces)
        return next(found, max(len(places), 1))

    def _strip(self, token_ids: tuple[int, ...]) -> tuple[int, ...]:
        begin = 0
        while begin < len(token_ids) and token_ids[begin] in self._marks.spaces:
            begin += 1
        return token_ids[begin:]

    def _name_break(self, token_id: int) -> Break:
        if token_id in self._marks.sentences:
            return Break.SENTENCE
        return Break.CLAUSE if token_id in self._marks.clauses else Break.CUT
