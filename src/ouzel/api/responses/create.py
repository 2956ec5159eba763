"""Starts a response, and answers whole or event by event: POST /responses."""

from contextlib import ExitStack

from starlette.types import Receive, Scope, Send

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import Exchange, get_exchange
from ouzel.api.http.framing import Framing
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.streams import Streams
from ouzel.api.responses.event_framing import EventFraming, stream_framing
from ouzel.api.responses.send import send_events, send_response
from ouzel.responses.events import EVENTS
from ouzel.responses.preparer import Preparer
from ouzel.responses.request import ResponsesRequest
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.runs import Runs


class CreateResponse:
    """Cancels the response if the client disconnects, unless it runs in the background."""

    def __init__(
        self,
        runs: Runs,
        preparer: Preparer,
        admission: RequestAdmission,
        framing: Framing,
        streams: Streams,
    ) -> None:
        self._preparer = preparer
        self._runs = runs
        self._admission = admission
        self._framing = framing
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._admission.admit(scope, receive) as admitted:
            await self._answer(admitted.body, get_exchange(scope), admitted.place, send)

    async def _answer(self, body: bytes, exchange: Exchange, place: ExitStack, send: Send) -> None:
        prepared = await self._preparer.prepare(
            body, key_id=exchange.key_id, arrival_s=exchange.arrival_s
        )
        with self._runs.running(prepared, key_id=exchange.key_id, place=place) as run:
            exchange.log_generation(run.generation)
            if prepared.is_stream:
                exchange.framing = self._framing
                framing = EventFraming(self._framing, prepared.obfuscates)
                await send_events(run.follow(), framing, self._streams, send)
            else:
                await send_response(await run.answer(), send)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/responses",
        prefixes=PREFIXES,
        summary="Answers a chat in items. WebSockets use the same path: "
        "docs/reference/responses.md.",
        endpoint=lambda services: CreateResponse(
            services.runs,
            services.preparer,
            services.admission,
            stream_framing(services.config),
            services.streams,
        ),
        choice=choose_for("generate"),
        bodies=(ResponsesRequest,),
        answers=(ResponseObject,),
        chunks=EVENTS,
    ),
)
