"""A response that is made here, as the store is told of it.

1.  Every write says whether the response is still ours: another server may have ended or deleted it.
2.  A response that somebody can ask for by its id is added before anything of it is seen, while its prompt is computed,
    and so is one in a conversation, which it locks. Any other is added with the first news of it, in one transaction.
3.  News may fail to be kept: what is not kept now is kept with what follows.
4.  The end must be kept. One in the background waits until it is, unless the server stops; whoever waits for another
    is told.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from ouzel.errors import StoreUnavailable
from ouzel.responses.event_log import EventLog
from ouzel.responses.response_object import ResponseObject
from ouzel.store.base import Store
from ouzel.store.records import Item, NewResponse, Progress, Status, StoredResponse

logger = logging.getLogger(__name__)

_NOTE_EVERY_S = 0.5  # so much of an answer is lost at most when the server dies
_TRY_AGAIN_S = 0.5
_encode = msgspec.json.Encoder().encode


class StoredProgress:
    def __init__(
        self,
        store: Store,
        response_id: str,
        key_id: str | None,
        log: EventLog,
        *,
        new: NewResponse | None = None,
        begins_at_once: bool = False,
    ) -> None:
        """`new` is the first record of a response that the store does not have yet; it has what is in `log`."""
        self.response_id = response_id
        self.key_id = key_id
        self._store = store
        self._log = log
        self._num_recorded = len(log)
        self._new = new
        self._begins_at_once = begins_at_once
        self._is_patient = new is None or new.is_background

    @property
    def has_begun(self) -> bool:
        """Tells whether the store has the response, so that it can be found by its id."""
        return self._new is None

    async def begin(self, response: ResponseObject, events: list[bytes]) -> None:
        """Adds a response that begins at once; nobody has seen `events` yet. Raises what `Store.add_response` does."""
        if self._new is not None and self._begins_at_once:
            await self._record(response, events)

    async def note(self, response: ResponseObject, events: Sequence[bytes] = ()) -> bool:
        """Keeps what has come since, and then `events`, which nobody has seen yet. Returns whether it is still ours."""
        if not events and self._num_recorded == len(self._log):
            return True
        try:
            return await self._record(response, events)
        except StoreUnavailable as error:
            logger.debug("response %s could not be kept up to now: %s", self.response_id, error)
            return True

    async def keep_up(
        self, making: asyncio.Task[None], response: Callable[[], ResponseObject]
    ) -> None:
        """Notes from time to time how far the response has come; cancels the task once the response is not ours."""
        while not making.done():
            await asyncio.wait({making}, timeout=_NOTE_EVERY_S)
            if not making.done() and not await self.note(response()):
                making.cancel()

    async def end(self, response: ResponseObject, events: Sequence[bytes]) -> ResponseObject | None:
        """Keeps the end; nobody has seen `events` yet. Returns how another server has ended the response, if one has.

        Raises StoreUnavailable, but not for a response in the background while the server goes on.
        """
        if await self._keep_end(response, events):
            return None
        stored = await self._store.response(self.response_id, self.key_id)
        return shown_response(stored) if stored is not None and stored.status.is_final else None

    async def drop(self) -> None:
        """Deletes a response of which nobody has seen anything."""
        if self.has_begun:
            await self._store.delete_response(self.response_id, self.key_id)

    def hurry(self) -> None:
        """From now on the end is kept at once or not at all: the server stops."""
        self._is_patient = False

    async def _keep_end(self, response: ResponseObject, events: Sequence[bytes]) -> bool:
        has_warned = False
        while True:
            try:
                return await self._record(response, events)
            except StoreUnavailable as error:
                if not self._is_patient:
                    raise
                if not has_warned:
                    logger.warning(
                        "the end of response %s could not be kept yet: %s", self.response_id, error
                    )
                has_warned = True
            await asyncio.sleep(_TRY_AGAIN_S)

    async def _record(self, response: ResponseObject, events: Sequence[bytes]) -> bool:
        """Writes the response with all events that the store does not have, `events` last."""
        progress = progress_to(response, [*self._log.encoded(self._num_recorded), *events])
        if self._new is not None:
            await self._add(self._new, progress)
        elif not await self._store.record(
            self.response_id, progress, first_event=self._num_recorded
        ):
            return False
        self._num_recorded += len(progress.events)
        return True

    async def _add(self, new: NewResponse, progress: Progress) -> None:
        begun = replace(new, status=progress.status, body=progress.body, events=progress.events)
        await self._store.add_response(begun, progress.output_items)
        self._new = None  # frees the request


def progress_to(response: ResponseObject, events: Sequence[bytes]) -> Progress:
    status = Status(response.status)
    items = (
        tuple(Item(item.id, _encode(item)) for item in response.output) if status.is_final else ()
    )
    return Progress(status=status, body=_encode(response), events=tuple(events), output_items=items)


def shown_response(stored: StoredResponse) -> ResponseObject:
    return msgspec.json.decode(stored.body, type=ResponseObject)
