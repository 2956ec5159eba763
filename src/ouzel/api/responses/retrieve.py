"""Answers GET /responses/{id} with the response, or with its events to the end."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.http.exchange import get_exchange
from ouzel.api.http.framing import Framing
from ouzel.api.http.query import Query
from ouzel.api.http.request_admission import cancel_on_disconnect
from ouzel.api.http.send import send_json
from ouzel.api.http.streams import Streams
from ouzel.api.responses.event_framing import EventFraming, stream_framing
from ouzel.api.responses.item_lists import INCLUDE, add_included, read_included
from ouzel.api.responses.send import Following, send_events
from ouzel.api.responses.stored import StoredResponseEndpoints
from ouzel.errors import InvalidRequest
from ouzel.responses.events import EVENTS
from ouzel.responses.includable import LOGPROBS
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.runs import Runs
from ouzel.responses.stored_progress import decode_response
from ouzel.store.base import Store
from ouzel.store.records import StoredResponse

# interval between looks for events of a response that runs on another server
_LOOK_EVERY_S = 0.25


class RetrieveResponse:
    def __init__(
        self, responses: StoredResponseEndpoints, runs: Runs, framing: Framing, streams: Streams
    ) -> None:
        self._responses = responses
        self._runs = runs
        self._framing = framing
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        query = Query(
            request.query_params, "include", "stream", "starting_after", "include_obfuscation"
        )
        is_stream = query.boolean("stream")
        for name in ("starting_after", "include_obfuscation"):
            if not is_stream and query.has(name):
                raise InvalidRequest("needs stream to be true", field=name)
        included = read_included(query)
        stored = await self._responses.find(request)
        run = self._runs.find(stored.id, stored.key_id)
        if LOGPROBS in included:
            _check_logprobs(decode_response(stored) if run is None else run.response)
        if not is_stream:
            body = (
                _show(stored)
                if run is None
                else await asyncio.to_thread(msgspec.json.encode, run.response)
            )
            await send_json(add_included(body, included), send)
            return
        after = query.integer("starting_after", -1, lowest=-1, highest=2**31)
        following = (
            self._follow(stored, after, self._responses.store(request))
            if run is None
            else run.follow(after)
        )
        get_exchange(scope).framing = self._framing
        framing = EventFraming(self._framing, query.boolean("include_obfuscation"))
        async with cancel_on_disconnect(receive):
            await send_events(_add_included(following, included), framing, self._streams, send)

    async def _follow(
        self, stored: StoredResponse, after: int, store: Store
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yields the events of a response that has ended, or that runs on another server."""
        current: StoredResponse | None = stored
        while current is not None:
            events = await store.events(stored.id, stored.key_id, after=after)
            if events:
                after += len(events)
                yield events
            if current.status.is_final:
                return
            await asyncio.sleep(_LOOK_EVERY_S)
            current = await store.response(stored.id, stored.key_id)


def _show(stored: StoredResponse) -> bytes:
    """Returns the body for clients, who see the usage at the end only."""
    if stored.status.is_final:
        return stored.body
    return msgspec.json.encode(replace(decode_response(stored), usage=None))


async def _add_included(following: Following, included: Collection[str]) -> Following:
    async with aclosing(following):
        async for events in following:
            yield [add_included(event, included) for event in events]


def _check_logprobs(response: ResponseObject) -> None:
    for part in response.text_parts:
        if part.text and not part.logprobs:
            raise InvalidRequest(
                f"must not ask for {LOGPROBS}: the response was made without", field="include"
            )


def _make_retrieve(catalogue: Catalogue) -> RetrieveResponse:
    shared = catalogue.shared
    responses = StoredResponseEndpoints(shared.runs)
    return RetrieveResponse(responses, shared.runs, stream_framing(shared.config), shared.streams)


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/responses/{response_id}",
        prefixes=PREFIXES,
        summary="Returns a stored response, or its events.",
        overall=_make_retrieve,
        query=(
            INCLUDE,
            QueryField(
                "stream",
                {"type": "boolean"},
                "Sends the events so far, then new events until the response ends.",
            ),
            QueryField(
                "starting_after",
                {"type": "integer", "minimum": -1},
                "The number of the last event that the client has; with stream.",
            ),
            QueryField(
                "include_obfuscation",
                {"type": "boolean"},
                "Random characters beside deltas; with stream.",
            ),
        ),
        answers=(ResponseObject,),
        chunks=EVENTS,
    ),
)
