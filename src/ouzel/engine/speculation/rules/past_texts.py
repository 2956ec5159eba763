"""What was written lately may be written again: answers of earlier requests are kept for a while, to be searched."""

from collections import OrderedDict

from ouzel.engine.speculation.rules.suffix_index import SuffixIndex

_MAX_TOKENS = 1 << 16  # of a generation; there are two
_MAX_SALTS = 32
BETWEEN = -1  # no token: separates texts


class IndexedText:
    """A text and where to find things in it."""

    def __init__(self, token_ids: list[int] | None = None) -> None:
        self.token_ids = token_ids or []
        self.index = SuffixIndex()
        self.index.follow(self.token_ids)

    def append(self, token_ids: list[int]) -> None:
        self.token_ids += token_ids
        self.index.follow(self.token_ids)


class PastTexts:
    """Has two generations of texts: when the younger is full, the older goes. Those of another salt are never seen."""

    def __init__(self) -> None:
        self._generations: OrderedDict[str, list[IndexedText]] = (
            OrderedDict()
        )  # by salt; younger ones first

    def add(self, salt: str, token_ids: list[int]) -> None:
        generations = self._generations.setdefault(salt, [IndexedText()])
        self._generations.move_to_end(salt)
        if len(self._generations) > _MAX_SALTS:
            self._generations.popitem(last=False)
        if len(generations[0].token_ids) > _MAX_TOKENS:
            generations[:] = [IndexedText(), generations[0]]
        generations[0].append([*token_ids[:_MAX_TOKENS], BETWEEN])

    def of(self, salt: str) -> list[IndexedText]:
        return self._generations.get(salt, [])
