"""Responses that are not kept are remembered while a client stays connected, so that it can go on from them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ouzel.responses.input_items import InputItem, Message
from ouzel.responses.response_object import ResponseObject


@dataclass(frozen=True, slots=True)
class History:
    """A history is the whole conversation up to the end of a response."""

    items: Sequence[Message]  # shared with what came before
    num_bytes: int


class RecentResponses:
    """Only the newest are remembered, the very last one however long it is."""

    def __init__(self, *, max_responses: int, max_bytes: int) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._histories: dict[str, History] = {}  # oldest first

    def __contains__(self, response_id: str) -> bool:
        return response_id in self._histories

    def find(self, response_id: str) -> History | None:
        return self._histories.get(response_id)

    def add(
        self,
        response: ResponseObject,
        *,
        earlier: Sequence[InputItem],
        input_items: Sequence[InputItem],
        num_input_bytes: int,
    ) -> None:
        """The response was made from `earlier` and `input_items`."""
        output = msgspec.json.encode(response.output)
        before = self._histories.get(response.previous_response_id or "")
        num_bytes = num_input_bytes + len(output) + (_num_bytes(earlier) if before is None else before.num_bytes)
        items = [*(item.fields for item in (*earlier, *input_items)), *msgspec.json.decode(output, type=list[Message])]
        self._histories[response.id] = History(items, num_bytes)
        self._num_bytes += num_bytes
        while len(self._histories) > 1 and (
            len(self._histories) > self._max_responses or self._num_bytes > self._max_bytes
        ):
            oldest = next(iter(self._histories))
            self._num_bytes -= self._histories.pop(oldest).num_bytes


def _num_bytes(items: Iterable[InputItem]) -> int:
    return sum(len(msgspec.json.encode(item.fields)) for item in items)
