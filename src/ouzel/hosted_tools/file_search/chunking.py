"""Divides a text into chunks, and long chunks into windows that an embedding model can read.

1.  The text is cut into atoms: sentences, lines, or short pieces of long ones. Atoms
    cover the whole text, so that the chunks of a file together have its whole text.
2.  A chunk is a row of atoms. `static` fills each chunk up to its size. `auto` prefers to end a
    chunk before a heading or an empty line.
3.  Numbers of tokens are sums over atoms, which differ a little from the tokens of the whole.
4.  A long text is cut a section at a time, so that a file of many short lines needs little memory.
    Work over a whole section runs in a thread.
"""

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from ouzel.hosted_tools.file_search.records import StaticChunking

CountTokens = Callable[[Sequence[str]], Awaitable[list[int]]]

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？])|\n+")
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_MAX_HEADING = 120  # characters
_MAX_COUNTED = 512  # atoms in one call of the tokenizer
_SECTION_CHARS = 2**18
_LONG_TOKEN = 32  # characters; a text with more for each token is halved without a count
# Levels of the border before an atom; a chunk prefers to begin at a high one.
_SENTENCE, _LINE, _PARAGRAPH, _SECTION = range(4)


_Span = tuple[int, int, int, str]  # the first fields of an atom


@dataclass(frozen=True, slots=True)
class Atom:
    start: int  # characters of the text before the atom
    end: int
    level: int  # the border before the atom
    heading: str  # the headings above the atom
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Chunk:
    start: int
    end: int
    heading: str
    windows: tuple[tuple[int, int], ...]  # parts that the embedding model can read


class Outline:
    """The headings above a place of a text; its lines are read in order."""

    def __init__(self) -> None:
        self._headings: list[str] = []
        self._is_code = False
        self.heading = ""  # all headings, with marks between them

    def read_line(self, line: str) -> bool:
        """Tells whether the line is a heading."""
        if _FENCE.match(line):
            self._is_code = not self._is_code
        found = None if self._is_code else _HEADING.match(line)
        if found is None:
            return False
        text = found[2][:_MAX_HEADING].rstrip()
        self._headings = [*self._headings[: len(found[1]) - 1], text]
        self.heading = " > ".join(self._headings)
        return True


def split_sections(text: str, max_chars: int = _SECTION_CHARS) -> Iterator[tuple[int, int]]:
    """Yields the starts and the ends of parts of a text, which end with a line if they can."""
    start = 0
    while start < len(text):
        end = start + max_chars
        if end < len(text):
            end = text.rfind("\n", start + max_chars // 2, end) + 1 or end
        yield start, min(end, len(text))
        start = end


async def cut_atoms(
    text: str,
    section: tuple[int, int],
    outline: Outline,
    count_tokens: CountTokens,
    max_tokens: int,
) -> list[Atom]:
    """Cuts a section of a text into atoms of at most `max_tokens`."""
    spans = await asyncio.to_thread(_mark_spans, text, section, outline)
    atoms: list[Atom] = []
    while spans:
        some: list[_Span] = []
        while spans and len(some) < _MAX_COUNTED:
            span = spans.popleft()
            if span[1] - span[0] > max_tokens * _LONG_TOKEN:
                spans.extendleft(_halve(text, span)[::-1])
            else:
                some.append(span)
        counts = await count_tokens([text[start:end] for start, end, _, _ in some])
        halves: list[_Span] = []
        for span, num_tokens in zip(some, counts, strict=True):
            if num_tokens <= max_tokens or span[1] - span[0] < 2:
                atoms.append(Atom(*span, num_tokens))
            else:
                halves += _halve(text, span)
        spans.extendleft(halves[::-1])
    return sorted(atoms, key=lambda atom: atom.start)


def _mark_spans(text: str, section: tuple[int, int], outline: Outline) -> deque[_Span]:
    """Returns the sentences and lines of a section."""
    spans: deque[_Span] = deque()
    start, level = section[0], _SECTION
    ends = [match.end() for match in _SENTENCE_END.finditer(text, *section)]
    for end in [*ends, section[1]]:
        if end == start:
            continue
        piece = text[start:end]
        if level >= _LINE and outline.read_line(piece):
            level = _SECTION
        spans.append((start, end, level, outline.heading))
        num_breaks = piece.count("\n")
        level = _PARAGRAPH if num_breaks > 1 else _LINE if num_breaks else _SENTENCE
        start = end
    return spans


def _halve(text: str, span: _Span) -> list[_Span]:
    start, end, level, heading = span
    middle = _find_middle(text, start, end)
    return [(start, middle, level, heading), (middle, end, _SENTENCE, heading)]


def _find_middle(text: str, start: int, end: int) -> int:
    """Returns a place near the middle of a span, at a space if there is one."""
    middle = (start + end) // 2
    space = text.find(" ", middle, middle + (end - middle) // 2)
    return middle if space < 0 else space + 1


def divide_static(atoms: Sequence[Atom], strategy: StaticChunking) -> list[list[Atom]]:
    """Fills chunks up to their size; each begins with the last atoms of the one before."""
    groups: list[list[Atom]] = []
    begin = 0
    while begin < len(atoms):
        end, num_tokens = begin, 0
        while end < len(atoms) and (
            end == begin or num_tokens + atoms[end].num_tokens <= strategy.max_chunk_size_tokens
        ):
            num_tokens += atoms[end].num_tokens
            end += 1
        groups.append(list(atoms[begin:end]))
        if end == len(atoms):
            break
        next_begin, num_shared = end, 0
        while (
            next_begin - 1 > begin
            and num_shared + atoms[next_begin - 1].num_tokens <= strategy.chunk_overlap_tokens
        ):
            next_begin -= 1
            num_shared += atoms[next_begin].num_tokens
        begin = next_begin
    return groups


def divide_by_sections(atoms: Sequence[Atom], max_tokens: int) -> list[list[Atom]]:
    """Ends chunks before headings and empty lines, where they have a size that is worth it."""
    groups: list[list[Atom]] = []
    group: list[Atom] = []
    num_tokens = 0
    for atom in atoms:
        begins_section = atom.level == _SECTION and num_tokens >= max_tokens // 4
        if group and (begins_section or num_tokens + atom.num_tokens > max_tokens):
            kept = group if begins_section else _find_border(group, max_tokens)
            groups.append(kept)
            group = group[len(kept) :]
            num_tokens = sum(each.num_tokens for each in group)
        group.append(atom)
        num_tokens += atom.num_tokens
    return [*groups, group] if group else groups


def _find_border(group: list[Atom], max_tokens: int) -> list[Atom]:
    """Returns the first part of a full group, up to its best border in the second half."""
    num_tokens, best, best_level = 0, len(group), _LINE
    for place, atom in enumerate(group):
        if num_tokens >= max_tokens // 2 and atom.level > best_level:
            best, best_level = place, atom.level
        num_tokens += atom.num_tokens
    return group[:best]


def make_chunk(group: Sequence[Atom], max_window_tokens: int) -> Chunk:
    """Makes a chunk of atoms, with as many windows as its tokens need."""
    windows, begin, num_tokens = [], group[0].start, 0
    for atom in group:
        if num_tokens and num_tokens + atom.num_tokens > max_window_tokens:
            windows.append((begin, atom.start))
            begin, num_tokens = atom.start, 0
        num_tokens += atom.num_tokens
    end = group[-1].end
    return Chunk(group[0].start, end, group[0].heading, (*windows, (begin, end)))
