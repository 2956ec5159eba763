"""Some texts, as the spellings of control tokens, are found in other texts."""

import itertools
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

_MAX_DEPTH = 16  # of the expression's brackets


class Spellings:
    """Finds any of some texts in a text, the longest first. Thousands of them cost no more than a few."""

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
        """Says whether some text has this part."""
        return any(part in text for text in self.texts)

    def len_of_begun(self, text: str) -> int:
        """Returns how many characters at the text's end are the beginning of one of the texts, which ends later."""
        return next(
            (
                n
                for n in range(min(self._max_len, len(text)), 0, -1)
                if _begins_one(text[-n:], self._sorted)
            ),
            0,
        )

    def len_of_ended(self, text: str) -> int:
        """Returns how many characters at the text's beginning are the end of one of the texts, which began earlier."""
        return next(
            (
                n
                for n in range(min(self._max_len, len(text)), 0, -1)
                if _begins_one(text[:n][::-1], self._sorted_reversed)
            ),
            0,
        )


def _begins_one(part: str, texts: Sequence[str]) -> bool:
    """Says whether one of the texts, which are sorted, goes on after this part. Mere words might be anybody's."""
    position = bisect_right(texts, part)
    return not part.isalnum() and position < len(texts) and texts[position].startswith(part)


def _expression(texts: Sequence[str], depth: int = 0) -> str:
    """Returns an expression that follows sorted texts character by character, however many there are."""
    if len(texts) == 1:
        return re.escape(texts[0])
    pairs = zip(texts[0], texts[-1], strict=False)
    begun = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    rests = sorted(
        {text[len(begun) :] for text in texts}, reverse=True
    )  # of those that begin alike, the longest first
    if depth == _MAX_DEPTH:
        branches = list(map(re.escape, rests))
    else:
        groups = itertools.groupby(filter(None, rests), key=lambda rest: rest[0])
        branches = [_expression(list(group), depth + 1) for _, group in groups]
    return f"{re.escape(begun)}(?:{'|'.join(filter(None, branches))})" + ("" if rests[-1] else "?")
