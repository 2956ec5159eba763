"""Remembers responses that the store does not have while their client stays connected.

The client can continue these responses. The memory of each client and of all clients is limited.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from ouzel.responses.input_items import InputItem
from ouzel.responses.item_fields import Message
from ouzel.responses.response_object import ResponseObject


@dataclass(frozen=True, slots=True)
class History:
    """The whole conversation up to the end of a response."""

    items: Sequence[Message]  # items are shared with the histories of earlier responses
    num_bytes: int


class RecentHistories:
    """Limits the bytes of the histories of all clients together.

    The oldest history of any client is forgotten first. The newest one stays, however long it is.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        # Response id -> the memory of its client, oldest first.
        self._owners: OrderedDict[str, RecentResponses] = OrderedDict()

    @contextmanager
    def remember_client(self, *, max_responses: int, max_bytes: int) -> Iterator["RecentResponses"]:
        """Yields the memory of a new client; it is forgotten at the end of the block."""
        recent = RecentResponses(self, max_responses=max_responses, max_bytes=max_bytes)
        try:
            yield recent
        finally:
            recent.forget_all()

    def add(self, response_id: str, num_bytes: int, owner: "RecentResponses") -> None:
        self._owners[response_id] = owner
        self._num_bytes += num_bytes
        while len(self._owners) > 1 and self._num_bytes > self._max_bytes:
            oldest_id, its_owner = next(iter(self._owners.items()))
            its_owner.forget(oldest_id)

    def remove(self, response_id: str, num_bytes: int) -> None:
        del self._owners[response_id]
        self._num_bytes -= num_bytes


class RecentResponses:
    """Remembers the newest responses of one client, within a number and a number of bytes.

    The last response stays, however long it is, unless `RecentHistories` forgets it.
    """

    def __init__(self, histories: RecentHistories, *, max_responses: int, max_bytes: int) -> None:
        self._of_all = histories
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._histories: OrderedDict[str, History] = OrderedDict()  # oldest first

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
        """Adds a response that was made from `earlier` and `input_items`."""
        output = msgspec.json.encode(response.output)
        before = self._histories.get(response.previous_response_id or "")
        num_earlier_bytes = _num_bytes(earlier) if before is None else before.num_bytes
        num_bytes = num_input_bytes + len(output) + num_earlier_bytes
        items = [
            *(item.fields for item in (*earlier, *input_items)),
            *msgspec.json.decode(output, type=list[Message]),
        ]
        self._histories[response.id] = History(items, num_bytes)
        self._num_bytes += num_bytes
        self._of_all.add(response.id, num_bytes, self)
        while len(self._histories) > 1 and (
            len(self._histories) > self._max_responses or self._num_bytes > self._max_bytes
        ):
            self.forget(next(iter(self._histories)))

    def forget(self, response_id: str) -> None:
        num_bytes = self._histories.pop(response_id).num_bytes
        self._num_bytes -= num_bytes
        self._of_all.remove(response_id, num_bytes)

    def forget_all(self) -> None:
        for response_id in list(self._histories):
            self.forget(response_id)


def _num_bytes(items: Iterable[InputItem]) -> int:
    return sum(len(msgspec.json.encode(item.fields)) for item in items)
