"""Keeps answers of earlier requests for a while, to search them for repetitions."""

from collections import OrderedDict

from ouzel.engine.speculation.rules.suffix_index import SuffixIndex

_MAX_TOKENS = 1 << 16  # tokens of a generation; there are two generations
_MAX_SALTS = 32
BETWEEN = -1  # no token id: separates texts


class IndexedText:
    """A text with an index of its token pairs."""

    def __init__(self, token_ids: list[int] | None = None) -> None:
        self.token_ids = token_ids or []
        self.index = SuffixIndex()
        self.index.follow(self.token_ids)

    def append(self, token_ids: list[int]) -> None:
        self.token_ids += token_ids
        self.index.follow(self.token_ids)


class PastTexts:
    """Past texts by cache salt, in two generations: when the younger is full, the older is dropped.

    Texts of another salt are never searched.
    """

    def __init__(self) -> None:
        # generations by salt, the younger first
        self._generations: OrderedDict[str, list[IndexedText]] = OrderedDict()

    def add(self, salt: str, token_ids: list[int]) -> None:
        generations = self._generations.setdefault(salt, [IndexedText()])
        self._generations.move_to_end(salt)
        if len(self._generations) > _MAX_SALTS:
            self._generations.popitem(last=False)
        if len(generations[0].token_ids) > _MAX_TOKENS:
            generations[:] = [IndexedText(), generations[0]]
        generations[0].append([*token_ids[:_MAX_TOKENS], BETWEEN])

    def find(self, salt: str) -> list[IndexedText]:
        return self._generations.get(salt, [])
