"""Writes the progress of a response that this server makes to the store.

1.  Every write tells whether this server still owns the response: another server may have ended or
    deleted it.
2.  A response that a client can ask for by its id is added while its prompt is computed, before a
    client sees anything of it. So is a response in a conversation, because it locks the
    conversation. Any other response is added with its first progress, in one transaction.
3.  Progress that cannot be written now is written with the next progress.
4.  The end must be written. A response in the background waits until it is, unless the server shuts
    down; for any other response the client gets the error.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from ouzel.generation import Usage
from ouzel.responses.event_log import EventLog
from ouzel.responses.response_object import ResponseObject, response_usage
from ouzel.store.base import Store
from ouzel.store.errors import StoreUnavailable
from ouzel.store.records import Item, NewResponse, Progress, Status, StoredResponse

logger = logging.getLogger(__name__)

_NOTE_EVERY_S = 0.5  # a server that dies loses at most this much of a response
_TRY_AGAIN_S = 0.5
_encode = msgspec.json.Encoder().encode

Snapshot = Callable[[], ResponseObject]  # returns the current state of the response


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
        """`new` is the record of a response that is not stored yet; None if it is stored.

        The events in `log` are stored already.
        """
        self.response_id = response_id
        self.key_id = key_id
        self._store = store
        self._log = log
        self._num_recorded = len(log)
        self._new = new
        self._begins_at_once = begins_at_once
        self._is_patient = new is None or new.is_background
        # The tokens used so far are stored for a server that may go on with the response.
        self.count_usage: Callable[[], Usage] | None = None
        self._writing = asyncio.Lock()  # each write begins where the one before has ended

    @property
    def has_begun(self) -> bool:
        """Tells whether the store has the response, so that it can be found by its id."""
        return self._new is None

    async def begin(self, response: ResponseObject, events: list[bytes]) -> None:
        """Adds the response to the store if `begins_at_once` is set; clients see `events` after it.

        Raises the errors of `Store.add_response`.
        """
        if self._new is not None and self._begins_at_once:
            await self._record(lambda: response, events)

    async def note(self, response: Snapshot, events: Sequence[bytes] = ()) -> bool:
        """Stores the new events of the log, and then `events`, which no client has seen yet.

        Returns whether this server still owns the response; a write that the store cannot take now
        counts as success.
        """
        if not events and self._num_recorded == len(self._log):
            return True
        try:
            return await self._record(response, events)
        except StoreUnavailable as error:
            logger.debug("progress of response %s not stored yet: %s", self.response_id, error)
            return True

    async def keep(self, response: Snapshot) -> bool:
        """Stores the progress, and waits until the store takes it.

        Returns False if this server no longer owns the response. Raises StoreUnavailable while the
        server shuts down.
        """
        while True:
            try:
                return await self._record(response, ())
            except StoreUnavailable:
                if not self._is_patient:
                    raise
            await asyncio.sleep(_TRY_AGAIN_S)

    async def keep_up(self, making: asyncio.Task[None], response: Snapshot) -> None:
        """Stores the progress every half second until the task `making` is done.

        Cancels the task when another server has ended or deleted the response.
        """
        while not making.done():
            await asyncio.wait({making}, timeout=_NOTE_EVERY_S)
            if not making.done() and not await self.note(response):
                making.cancel()

    async def end(self, response: ResponseObject, events: Sequence[bytes]) -> ResponseObject | None:
        """Stores the end of the response; clients see `events` after it.

        Returns None, or the ended response if another server has ended it before. Raises
        StoreUnavailable; a response in the background is retried instead until the server stops.
        """
        if await self._keep_end(response, events):
            return None
        stored = await self._store.response(self.response_id, self.key_id)
        return decode_response(stored) if stored is not None and stored.status.is_final else None

    async def drop(self) -> None:
        """Deletes the response from the store, if the store has it.

        The caller knows that no client has seen the response.
        """
        if self.has_begun:
            await self._store.delete_response(self.response_id, self.key_id)

    def hurry(self) -> None:
        """Stops retries of the end, because the server shuts down."""
        self._is_patient = False

    async def _keep_end(self, response: ResponseObject, events: Sequence[bytes]) -> bool:
        has_warned = False
        while True:
            try:
                return await self._record(lambda: response, events)
            except StoreUnavailable as error:
                if not self._is_patient:
                    raise
                if not has_warned:
                    logger.warning(
                        "the end of response %s is not stored yet: %s", self.response_id, error
                    )
                has_warned = True
            await asyncio.sleep(_TRY_AGAIN_S)

    async def _record(self, response: Snapshot, events: Sequence[bytes]) -> bool:
        """Writes the response, the events of the log that the store lacks, and then `events`.

        Returns False if this server no longer owns the response.
        """
        async with self._writing:
            return await self._record_alone(response(), events)

    async def _record_alone(self, response: ResponseObject, events: Sequence[bytes]) -> bool:
        if self.count_usage is not None and response.status == "in_progress":
            response = replace(response, usage=response_usage(self.count_usage()))
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
        self._new = None  # frees the memory of the request


def progress_to(response: ResponseObject, events: Sequence[bytes]) -> Progress:
    """Builds the record of the current state of the response and its new events."""
    status = Status(response.status)
    items: tuple[Item, ...] = ()
    if status.is_final:
        items = tuple(Item(item.id, _encode(item)) for item in response.output)
    return Progress(status=status, body=_encode(response), events=tuple(events), output_items=items)


def decode_response(stored: StoredResponse) -> ResponseObject:
    return msgspec.json.decode(stored.body, type=ResponseObject)
