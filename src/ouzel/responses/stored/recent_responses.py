"""Responses that are not kept are remembered while a client stays connected, so that it can go on from them.

Each client has its own, and all of them together are bounded.
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
    """A history is the whole conversation up to the end of a response."""

    items: Sequence[Message]  # shared with what came before
    num_bytes: int


class RecentHistories:
    """Those of all clients. The oldest is forgotten first, whosever it is; the newest is kept however long it is."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._owners: OrderedDict[str, RecentResponses] = (
            OrderedDict()
        )  # by response id, oldest first

    @contextmanager
    def of_a_client(self, *, max_responses: int, max_bytes: int) -> Iterator["RecentResponses"]:
        """Yields those of a client, which are forgotten when it leaves."""
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
    """Only a client's newest are remembered, the very last one however long it is, where others leave the room."""

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
        """The response was made from `earlier` and `input_items`."""
        output = msgspec.json.encode(response.output)
        before = self._histories.get(response.previous_response_id or "")
        num_bytes = (
            num_input_bytes
            + len(output)
            + (_num_bytes(earlier) if before is None else before.num_bytes)
        )
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
