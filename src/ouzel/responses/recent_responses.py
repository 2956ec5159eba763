"""Responses that are not kept, remembered while a client stays connected, so that it can go on from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ouzel.responses.input_items import Message, PlacedItem
from ouzel.responses.response_object import ResponseObject


@dataclass(frozen=True, slots=True)
class _Said:
    """The whole conversation up to the end of a response."""

    items: Sequence[Message]  # shared with what came before
    num_bytes: int


class RecentResponses:
    """The newest ones; the very last is remembered however long it is."""

    def __init__(self, *, max_responses: int, max_bytes: int) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._said: dict[str, _Said] = {}  # oldest first

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._said

    def find(self, response_id: str) -> Sequence[Message] | None:
        said = self._said.get(response_id)
        return None if said is None else said.items

    def add(
        self,
        response: ResponseObject,
        *,
        earlier: Sequence[PlacedItem],
        given: Sequence[PlacedItem],
        num_given_bytes: int,
    ) -> None:
        """`earlier`, `given`: what it was made from."""
        output = msgspec.json.encode(response.output)
        before = self._said.get(response.previous_response_id or "")
        num_bytes = num_given_bytes + len(output) + (_num_bytes(earlier) if before is None else before.num_bytes)
        said = [*(placed.item for placed in (*earlier, *given)), *msgspec.json.decode(output, type=list[Message])]
        self._said[response.id] = _Said(said, num_bytes)
        self._num_bytes += num_bytes
        while len(self._said) > 1 and (len(self._said) > self._max_responses or self._num_bytes > self._max_bytes):
            oldest = next(iter(self._said))
            self._num_bytes -= self._said.pop(oldest).num_bytes


def _num_bytes(items: Iterable[PlacedItem]) -> int:
    return sum(len(msgspec.json.encode(placed.item)) for placed in items)
