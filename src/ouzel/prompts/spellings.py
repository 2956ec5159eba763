"""Some texts, as the spellings of control tokens, are found in other texts."""

import re
from collections.abc import Collection, Iterator
from typing import TypeAlias


class Spellings:
    """Finds any of some texts in a text, the longest first. Thousands of them cost no more than a few."""

    def __init__(self, texts: Collection[str]) -> None:
        assert all(texts)
        self.texts = frozenset(texts)
        self._pattern = re.compile(_pattern_of(texts)) if texts else None
        self._max_len = max(map(len, texts), default=0)
        # Parts that are mere words might be anybody's.
        self._beginnings = {text[:end] for text in texts for end in range(1, len(text)) if not text[:end].isalnum()}
        self._ends = {text[start:] for text in texts for start in range(1, len(text)) if not text[start:].isalnum()}

    def spans(self, text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
        if self._pattern is not None:
            for found in self._pattern.finditer(text, start, len(text) if end is None else end):
                yield found.span()

    def hold(self, part: str) -> bool:
        """Says whether some text has this part."""
        return any(part in text for text in self.texts)

    def len_of_begun(self, text: str) -> int:
        """Returns how many characters at the text's end are the beginning of one of the texts, which ends later."""
        return next((n for n in range(min(self._max_len, len(text)), 0, -1) if text[-n:] in self._beginnings), 0)

    def len_of_ended(self, text: str) -> int:
        """Returns how many characters at the text's beginning are the end of one of the texts, which began earlier."""
        return next((n for n in range(min(self._max_len, len(text)), 0, -1) if text[:n] in self._ends), 0)


_Node: TypeAlias = "dict[str, _Node]"


def _pattern_of(texts: Collection[str]) -> str:
    """Returns an expression that follows the texts character by character, however many there are."""
    root: _Node = {}
    for text in texts:
        node = root
        for character in text:
            node = node.setdefault(character, {})
        node[""] = {}  # a text ends here
    return _expression(root)


def _expression(node: _Node) -> str:
    chain = ""
    while len(node) == 1 and "" not in node:
        [(character, node)] = node.items()
        chain += re.escape(character)
    branches = [re.escape(character) + _expression(after) for character, after in node.items() if character]
    return chain + (f"(?:{'|'.join(branches)})" if branches else "") + ("?" if branches and "" in node else "")
