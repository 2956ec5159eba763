"""Finds many given texts, such as the spellings of control tokens, in other texts."""

import itertools
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

_MAX_DEPTH = 16  # nested brackets of the regular expression


class Spellings:
    """Searches for a set of texts. The longest match wins; thousands of texts cost no more than a
    few.
    """

    def __init__(self, texts: Collection[str]) -> None:
        assert all(texts)
        self.texts = frozenset(texts)
        self._pattern = re.compile(_expression(sorted(self.texts))) if texts else None
        self._max_len = max(map(len, texts), default=0)
        self._sorted = sorted(self.texts)
        self._sorted_reversed = sorted(text[::-1] for text in self.texts)

    def spans(self, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            for found in self._pattern.finditer(text, start, len(text) if end is None else end):
                yield found.span()

    def hold(self, part: str) -> bool:
        """Tells whether `part` occurs in one of the texts."""
        return any(part in text for text in self.texts)

    def len_of_begun(self, text: str) -> int:
        """Returns the length of the longest suffix of `text` that is a prefix of a spelling."""
        for length in range(min(self._max_len, len(text)), 0, -1):
            if _begins_one(text[-length:], self._sorted):
                return length
        return 0

    def len_of_ended(self, text: str) -> int:
        """Returns the length of the longest prefix of `text` that is a suffix of a spelling."""
        for length in range(min(self._max_len, len(text)), 0, -1):
            if _begins_one(text[:length][::-1], self._sorted_reversed):
                return length
        return 0


def _begins_one(part: str, texts: Sequence[str]) -> bool:
    """Tells whether one of the sorted texts begins with `part`. A part of letters and digits only
    does not count, because it may be an ordinary word.
    """
    position = bisect_right(texts, part)
    return not part.isalnum() and position < len(texts) and texts[position].startswith(part)


def _expression(texts: Sequence[str], depth: int = 0) -> str:
    """Returns a regular expression for sorted texts that branches character by character."""
    if len(texts) == 1:
        return re.escape(texts[0])
    pairs = zip(texts[0], texts[-1], strict=False)
    begun = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    # the rest of each text behind the shared beginning, the longest first
    rests = sorted({text[len(begun) :] for text in texts}, reverse=True)
    if depth == _MAX_DEPTH:
        branches = list(map(re.escape, rests))
    else:
        groups = itertools.groupby(filter(None, rests), key=lambda rest: rest[0])
        branches = [_expression(list(group), depth + 1) for _, group in groups]
    return f"{re.escape(begun)}(?:{'|'.join(filter(None, branches))})" + ("" if rests[-1] else "?")
