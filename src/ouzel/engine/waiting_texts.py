"""Texts wait here to be computed whole; what a step takes is found without looking at all of them.

Many thousands may wait, since a request brings up to 64. Each is known by its request, so that an abort finds it, by
its order, and by its length among those of the same priority.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

Order = tuple[
    int, int, int
]  # priority, arrival, index: smaller goes first; no two texts have the same


@dataclass(frozen=True, slots=True)
class WaitingText:
    request_id: str
    index: int
    order: Order
    token_ids: list[int]
    second_begin: int
    added_at: float


class WaitingTexts:
    def __init__(self) -> None:
        self._of_requests: dict[str, dict[int, WaitingText]] = {}
        self._of_lengths: dict[
            int, dict[int, dict[Order, WaitingText]]
        ] = {}  # priority -> length -> oldest first
        self._orders: list[
            tuple[Order, WaitingText]
        ] = []  # a heap; those of texts that are gone go when they come up
        self._num_texts = 0

    def __len__(self) -> int:
        return self._num_texts

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._of_requests

    def add(self, text: WaitingText) -> None:
        self._of_requests.setdefault(text.request_id, {})[text.index] = text
        of_priority = self._of_lengths.setdefault(text.order[0], {})
        of_priority.setdefault(len(text.token_ids), {})[text.order] = text
        heappush(self._orders, (text.order, text))
        self._num_texts += 1

    def take_request(self, request_id: str, index: int | None) -> list[WaitingText]:
        """Takes out the request's texts, or the one of that index, where there are any."""
        texts = self._of_requests.get(request_id, {})
        gone = [text for text in texts.values() if index in (None, text.index)]
        for text in gone:
            self._remove(text)
        return gone

    def take_batch(self, *, max_tokens: int, max_texts: int) -> list[WaitingText]:
        """Takes out the text that goes first, and besides it those of its priority that are nearest to it in length.

        The first one may have more tokens than that.
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
            if self._of_requests.get(text.request_id, {}).get(text.index) is text:
                return text
            heappop(self._orders)

    def _nearest(self, first: WaitingText) -> Iterator[WaitingText]:
        num_tokens = len(first.token_ids)
        of_priority = self._of_lengths.get(first.order[0], {})
        for length in sorted(of_priority, key=lambda length: abs(length - num_tokens)):
            yield from of_priority[length].values()

    def _remove(self, text: WaitingText) -> None:
        of_request = self._of_requests[text.request_id]
        del of_request[text.index]
        if not of_request:
            del self._of_requests[text.request_id]
        of_priority = self._of_lengths[text.order[0]]
        of_length = of_priority[len(text.token_ids)]
        del of_length[text.order]
        if not of_length:
            del of_priority[len(text.token_ids)]
        if not of_priority:
            del self._of_lengths[text.order[0]]
        self._num_texts -= 1
