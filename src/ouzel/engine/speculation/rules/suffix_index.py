"""Searches a text for the longest match with the end of another text.

Places after equal pairs of tokens form chains, newest first, as in compressors of the LZ77 kind
(RFC 1951, section 4): a search walks one chain, however long the text is.
"""

from collections.abc import Sequence

import msgspec

MAX_MATCH = 32  # a longer match gives no more certainty
_MAX_CANDIDATES = 16  # places of a chain to try: a common pair has many


class Match(msgspec.Struct, frozen=True):
    """A match: the `length` tokens before `place` equal the end of the other text."""

    place: int
    length: int


class SuffixIndex:
    """Finds the longest match of another text's end in one text of tokens, which may grow."""

    def __init__(self) -> None:
        self._newest: dict[tuple[int, int], int] = {}  # the last place after each pair
        self._newest_single: dict[int, int] = {}  # the last place after each token
        self._before: list[int] = []  # the place before each place in its chain, or -1

    def follow(self, text: Sequence[int]) -> None:
        """Adds the tokens that the text gained since the last call."""
        begin = len(self._before)
        for place in range(begin, len(text)):
            if place < 2:
                self._before.append(-1)
            else:
                pair = (text[place - 2], text[place - 1])
                self._before.append(self._newest.get(pair, -1))
                self._newest[pair] = place
            if place:
                self._newest_single[text[place - 1]] = place

    def longest(
        self,
        text: Sequence[int],
        end: Sequence[int],
        max_length: int = MAX_MATCH,
        likely: int | None = None,
    ) -> Match | None:
        """Returns the place in `text` (the indexed text) after the longest match with the end of
        `end`.

        Among equal lengths the `likely` place wins, then the newest.
        """
        max_length = min(max_length, MAX_MATCH)
        best = None
        if max_length >= 2 and len(end) >= 2:
            place = self._newest.get((end[-2], end[-1]), -1)
            if (
                likely is not None
                and 2 <= likely < len(self._before)
                and _ends_alike(text, likely, end)
            ):
                best = Match(likely, _common_length(text, likely, end, max_length))
            for _ in range(_MAX_CANDIDATES):
                if place < 0 or (best is not None and best.length == max_length):
                    break
                length = _common_length(text, place, end, max_length)
                if best is None or length > best.length:
                    best = Match(place, length)
                place = self._before[place]
        if best is None and end and (single := self._newest_single.get(end[-1])) is not None:
            best = Match(single, 1)
        return best


def _ends_alike(text: Sequence[int], place: int, end: Sequence[int]) -> bool:
    return text[place - 2] == end[-2] and text[place - 1] == end[-1]


def _common_length(text: Sequence[int], place: int, end: Sequence[int], max_length: int) -> int:
    """Counts the equal tokens before `place` and at the end of `end`; two are known to be equal."""
    length = 2
    limit = min(max_length, place, len(end))
    while length < limit and text[place - 1 - length] == end[-1 - length]:
        length += 1
    return length
