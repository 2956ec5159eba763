"""What the store knows of one response while it is made here.

Every write says whether the response is still ours: another server may have cancelled or deleted it.
"""

import msgspec

from ouzel.api.responses.event_log import EventLog
from ouzel.api.responses.response_object import ResponseObject
from ouzel.store.records import Item, NewResponse, Progress, Status, StoredResponse
from ouzel.store.store import Store

_encode = msgspec.json.Encoder().encode


class Keeping:
    def __init__(self, store: Store, response_id: str, key_id: str | None, log: EventLog) -> None:
        """What `log` holds already is in the store."""
        self.response_id = response_id
        self.key_id = key_id
        self._store = store
        self._log = log
        self._num_recorded = len(log)
        self.has_begun = len(log) > 0

    async def begin(self, new: NewResponse) -> None:
        """Raises what `Store.add_response` raises."""
        await self._store.add_response(new)
        self._num_recorded = len(new.events)
        self.has_begun = True

    async def note(self, response: ResponseObject) -> bool:
        """`response` as far as it has come, with the events that have led there."""
        return await self._record(response, self._log.encoded(self._num_recorded))

    async def add(self, response: ResponseObject, new: list[bytes]) -> bool:
        """`new`: events that are not in the log yet, because nobody shall see them before they are kept."""
        return await self._record(response, [*self._log.encoded(self._num_recorded), *new])

    async def drop(self) -> None:
        """Of a response that has not begun."""
        await self._store.delete_response(self.response_id, self.key_id)

    async def ended_elsewhere(self) -> ResponseObject | None:
        """As another server has ended it; None: nobody has."""
        stored = await self._store.response(self.response_id, self.key_id)
        return shown_response(stored) if stored is not None and stored.status.is_final else None

    async def _record(self, response: ResponseObject, events: list[bytes]) -> bool:
        is_ours = await self._store.record(
            self.response_id, progress_to(response, events), first_event=self._num_recorded
        )
        if is_ours:
            self._num_recorded += len(events)
        return is_ours


def progress_to(response: ResponseObject, events: list[bytes]) -> Progress:
    status = Status(response.status)
    items = tuple(Item(item.id, _encode(item)) for item in response.output) if status.is_final else ()
    return Progress(status=status, body=_encode(response), events=tuple(events), output_items=items)


def shown_response(stored: StoredResponse) -> ResponseObject:
    return msgspec.json.decode(stored.body, type=ResponseObject)
