"""Holds the texts that wait to be computed, and finds the texts of a step without a look at all of
them.

Many thousands may wait, since a request brings up to 64. An index by request serves aborts, a heap
by order and an index by priority and length serve the steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from ouzel.pooling import VectorForm, Voice

# priority, arrival, index: smaller goes first; no two texts have the same order
Order = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class WaitingText:
    request_id: str
    index: int
    order: Order
    token_ids: list[int]
    second_begin: int
    added_at: float
    task: int = 0  # number of the adapter for the text's task; 0: none
    form: VectorForm = "text"
    num_visible: int = 0  # tokens that the text's tokens attend to; 0: all
    voice: Voice | None = None  # None: the model does not speak


class WaitingTexts:
    """The texts that wait for a step of an encoder, by request, order and length."""

    def __init__(self) -> None:
        self._by_request: dict[str, dict[int, WaitingText]] = {}
        # priority -> length -> texts, oldest first
        self._by_length: dict[int, dict[int, dict[Order, WaitingText]]] = {}
        # A heap. Entries of removed texts stay until they come to the top.
        self._orders: list[tuple[Order, WaitingText]] = []
        self._num_texts = 0

    def __len__(self) -> int:
        return self._num_texts

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._by_request

    def add(self, text: WaitingText) -> None:
        self._by_request.setdefault(text.request_id, {})[text.index] = text
        lengths = self._by_length.setdefault(text.order[0], {})
        lengths.setdefault(len(text.token_ids), {})[text.order] = text
        heappush(self._orders, (text.order, text))
        self._num_texts += 1

    def take_request(self, request_id: str, index: int | None) -> list[WaitingText]:
        """Removes and returns the waiting texts of a request; with `index`, only this text."""
        texts = self._by_request.get(request_id, {})
        removed = [text for text in texts.values() if index in (None, text.index)]
        for text in removed:
            self._remove(text)
        return removed

    def take_batch(self, *, max_tokens: int, max_texts: int) -> list[WaitingText]:
        """Removes and returns the first text and the texts of its priority with the nearest
        lengths.

        The first text alone may exceed `max_tokens`.
        """
        if not self._num_texts:
            return []
        first = self._first()
        batch, num_tokens = [first], len(first.token_ids)
        self._remove(first)
        for text in self._nearest(first):
            num_tokens += len(text.token_ids)
            if num_tokens > max_tokens or len(batch) >= max_texts:
                break
            batch.append(text)
        for text in batch[1:]:
            self._remove(text)
        return batch

    def _first(self) -> WaitingText:
        while True:
            text = self._orders[0][1]
            if self._by_request.get(text.request_id, {}).get(text.index) is text:
                return text
            heappop(self._orders)

    def _nearest(self, first: WaitingText) -> Iterator[WaitingText]:
        num_tokens = len(first.token_ids)
        lengths = self._by_length.get(first.order[0], {})
        for length in sorted(lengths, key=lambda length: abs(length - num_tokens)):
            yield from lengths[length].values()

    def _remove(self, text: WaitingText) -> None:
        texts_of_request = self._by_request[text.request_id]
        del texts_of_request[text.index]
        if not texts_of_request:
            del self._by_request[text.request_id]
        lengths = self._by_length[text.order[0]]
        texts_of_length = lengths[len(text.token_ids)]
        del texts_of_length[text.order]
        if not texts_of_length:
            del lengths[len(text.token_ids)]
        if not lengths:
            del self._by_length[text.order[0]]
        self._num_texts -= 1
