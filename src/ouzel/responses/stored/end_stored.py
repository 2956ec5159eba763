"""Ends a stored response that no server makes any more, or that another server makes."""

from collections.abc import Callable, Iterator

import msgspec

from ouzel.responses.event_base import ResponseEvent
from ouzel.responses.response_builder import ResponseBuilder
from ouzel.responses.response_object import ResponseError, ResponseObject
from ouzel.responses.stored_progress import decode_response, progress_to
from ouzel.store.base import Store
from ouzel.store.records import StoredResponse

_encode = msgspec.json.Encoder().encode


async def cancel_stored(store: Store, stored: StoredResponse) -> ResponseObject | None:
    """Cancels a stored response.

    Returns the ended response. If the response had ended before, its status is unchanged. Returns
    None if the response was deleted in the meantime.
    """
    return await _end(store, stored, ResponseBuilder.cancel)


async def fail_stored(
    store: Store, stored: StoredResponse, error: ResponseError
) -> ResponseObject | None:
    """Fails a stored response; returns the same as `cancel_stored`."""
    return await _end(store, stored, lambda builder: builder.fail(error))


async def _end(
    store: Store,
    stored: StoredResponse,
    last_events: Callable[[ResponseBuilder], Iterator[ResponseEvent]],
) -> ResponseObject | None:
    """Writes the last events; tries again as long as another server adds events in between."""
    current: StoredResponse | None = stored
    while current is not None and not current.status.is_final:
        builder = ResponseBuilder.resume(decode_response(current), current.num_events)
        events = [_encode(event) for event in last_events(builder)]
        if await store.record(
            current.id, progress_to(builder.response, events), first_event=current.num_events
        ):
            return builder.response
        current = await store.response(current.id, current.key_id)
    return None if current is None else decode_response(current)
