"""What the store knows of one response while it is made here.

Every write says whether the response is still ours: another server may have cancelled or deleted it.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ouzel.responses.event_log import EventLog
from ouzel.responses.response_object import ResponseObject
from ouzel.store.base import Store
from ouzel.store.records import Item, NewResponse, Progress, Status, StoredResponse

_encode = msgspec.json.Encoder().encode


class StoredProgress:
    def __init__(self, store: Store, response_id: str, key_id: str | None, log: EventLog) -> None:
        """What `log` holds already is in the store."""
        self.response_id = response_id
        self.key_id = key_id
        self._store = store
        self._log = log
        self._num_recorded = len(log)
        self._held: NewResponse | None = None
        self.has_begun = len(log) > 0

    async def begin(self, new: NewResponse) -> None:
        """Raises what `Store.add_response` raises."""
        await self._add(new, ())

    def hold(self, new: NewResponse) -> None:
        """Begins with the first thing there is to tell, in one transaction; for a response whose id nobody has yet."""
        self._held = new

    async def note(self, response: ResponseObject) -> bool:
        """`response` as far as it has come, with the events that have led there."""
        return await self._record(response, self._log.encoded(self._num_recorded))

    async def add(self, response: ResponseObject, new: list[bytes]) -> bool:
        """`new`: events that are not in the log yet, because nobody shall see them before they are kept."""
        return await self._record(response, [*self._log.encoded(self._num_recorded), *new])

    async def drop(self) -> None:
        """Of a response that nobody has seen."""
        if self.has_begun:
            await self._store.delete_response(self.response_id, self.key_id)

    async def ended_elsewhere(self) -> ResponseObject | None:
        """As another server has ended it; None: nobody has."""
        stored = await self._store.response(self.response_id, self.key_id)
        return shown_response(stored) if stored is not None and stored.status.is_final else None

    async def _record(self, response: ResponseObject, events: list[bytes]) -> bool:
        progress = progress_to(response, events)
        if self._held is not None:
            new = replace(self._held, status=progress.status, body=progress.body, events=progress.events)
            await self._add(new, progress.output_items)
            return True
        is_ours = await self._store.record(self.response_id, progress, first_event=self._num_recorded)
        if is_ours:
            self._num_recorded += len(events)
        return is_ours

    async def _add(self, new: NewResponse, output_items: Sequence[Item]) -> None:
        await self._store.add_response(new, output_items)
        self._held = None
        self._num_recorded = len(new.events)
        self.has_begun = True


def progress_to(response: ResponseObject, events: list[bytes]) -> Progress:
    status = Status(response.status)
    items = tuple(Item(item.id, _encode(item)) for item in response.output) if status.is_final else ()
    return Progress(status=status, body=_encode(response), events=tuple(events), output_items=items)


def shown_response(stored: StoredResponse) -> ResponseObject:
    return msgspec.json.decode(stored.body, type=ResponseObject)
