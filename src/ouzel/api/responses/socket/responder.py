"""Answers the requests of a WebSocket event by event, with the successors that steering demands."""

import logging
from contextlib import ExitStack, aclosing
from http import HTTPStatus

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import find_for, read_model_name
from ouzel.api.endpoint.on_demand import find_name, hold_chosen
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import CLIENT_CLOSED_REQUEST, ClientDisconnected, Exchange
from ouzel.api.http.faults import make_fault
from ouzel.api.http.refusal_reason import make_refusal_reason
from ouzel.api.http.request_log import log_exchange
from ouzel.api.http.request_span import end_message_span
from ouzel.api.http.socket_exchanges import SocketExchanges
from ouzel.api.responses.event_framing import event_name, obfuscate
from ouzel.api.responses.socket.events import SteerError
from ouzel.api.responses.socket.messages import Create
from ouzel.api.responses.socket.outbox import Outbox
from ouzel.api.responses.socket.steering import Active, Steering, give_back
from ouzel.errors import STOPS, OuzelError
from ouzel.observability import request_id_in_scope, span_in_scope
from ouzel.responses.preparer import PreparedResponse
from ouzel.responses.run import Run
from ouzel.responses.stored.recent_responses import RecentResponses

_NAME = "response.create"
logger = logging.getLogger(__name__)


class Responder:
    """Answers the requests of one connection. `exchange` is the exchange of the handshake."""

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        recent: RecentResponses,
        steering: Steering,
        exchange: Exchange,
        path: str,
    ) -> None:
        self._catalogue = catalogue
        self._runs = catalogue.shared.runs
        self._recent = recent
        self._steering = steering
        self._path = path
        self._exchanges = SocketExchanges(exchange, path)

    async def respond(self, create: Create, outbox: Outbox) -> None:
        """Answers a request and its successors. Raises ClientDisconnected."""
        following: Create | None = self._steering.add_waiting(create)
        is_automatic = False
        try:
            while following is not None:
                following = await self._respond(following, outbox, is_automatic=is_automatic)
                is_automatic = True
        finally:
            self._steering.settle()

    def log_refused(self, error: OuzelError) -> None:
        """Logs a message that is invalid, or was refused before it became a request."""
        self._exchanges.log_refused(error)

    async def _respond(
        self, create: Create, outbox: Outbox, *, is_automatic: bool
    ) -> Create | None:
        """Answers one request. Returns the request of its successor, or None."""
        exchange = self._exchanges.make_next()
        request_id_in_scope.set(exchange.request_id)
        connection_span = span_in_scope.get()
        span = (
            None
            if connection_span is None
            else connection_span.child(_NAME, start_s=exchange.arrival_s)
        )
        span_in_scope.set(span)
        try:
            with self._catalogue.shared.exchanges.track(exchange, f"{_NAME} {self._path}"):
                active = await self._make(create, exchange, outbox)
            exchange.status = HTTPStatus.OK
            return await self._steering.follow_up(active, outbox)
        except ClientDisconnected:
            exchange.status = CLIENT_CLOSED_REQUEST
            raise
        except STOPS:
            raise
        # broad: the connection, and its other requests, outlive one request
        except BaseException as error:
            exchange.refusal = make_refusal_reason(error)
            exchange.status = await self._refuse(create, error, outbox, is_automatic=is_automatic)
            return None
        finally:
            if exchange.status is None:  # the whole connection ends
                exchange.status = CLIENT_CLOSED_REQUEST
            log_exchange(exchange, _NAME, self._path)
            if span is not None:
                end_message_span(span, exchange, _NAME)
            span_in_scope.set(connection_span)

    async def _make(self, create: Create, exchange: Exchange, outbox: Outbox) -> Active:
        async def choose() -> Services:
            return find_for(self._catalogue, read_model_name(create.text), "generate")

        on_demand = self._catalogue.on_demand
        if on_demand is None:
            return await self._make_with(await choose(), create, exchange, outbox)
        name = await find_name(on_demand, choose)
        async with hold_chosen(on_demand, choose, name) as (services, _):
            return await self._make_with(services, create, exchange, outbox)

    async def _make_with(
        self, services: Services, create: Create, exchange: Exchange, outbox: Outbox
    ) -> Active:
        with services.admission.take_place() as place:
            prepared = await services.preparer.prepare_object(
                create.body,
                key_id=exchange.key_id,
                arrival_s=exchange.arrival_s,
                num_bytes=create.num_bytes,
                generates=create.generates,
                recent=self._recent,
            )
            return await self._send_events(prepared, create, exchange, place, outbox)

    async def _send_events(
        self,
        prepared: PreparedResponse,
        create: Create,
        exchange: Exchange,
        place: ExitStack,
        outbox: Outbox,
    ) -> Active:
        with self._runs.running(prepared, key_id=exchange.key_id, place=place) as run:
            exchange.log_generation(run.generation, has_head=False)
            active = self._steering.begin(run, create)
            try:
                async with aclosing(run.follow()) as following:
                    async for events in following:
                        self._remember(run, prepared, create)
                        for event in events:
                            is_padded = prepared.obfuscates and event_name(event).endswith(
                                b".delta"
                            )
                            await outbox.put_encoded(obfuscate(event) if is_padded else event)
                            active.num_sent += 1
            finally:
                self._steering.end(active)
            return active

    def _remember(self, run: Run, prepared: PreparedResponse, create: Create) -> None:
        """Remembers the response before the client reads its end and may continue it."""
        response = run.response
        if (
            response.store
            or response.status in ("queued", "in_progress")
            or response.id in self._recent
        ):
            return
        context = prepared.context
        self._recent.add(
            response,
            earlier=context.earlier,
            input_items=context.input,
            num_input_bytes=create.num_bytes,
        )

    async def _refuse(
        self, create: Create, error: BaseException, outbox: Outbox, *, is_automatic: bool
    ) -> int:
        """Sends the error of a request, and returns its status."""
        if not isinstance(error, OuzelError):
            logger.error("unexpected error", exc_info=error)
        if not is_automatic:
            self._steering.wait_again(create)
            return await outbox.put_error(error)
        fault = make_fault(error)
        await give_back(
            create.steers, SteerError("successor_creation_failed", fault.message), 0, outbox
        )
        return fault.status
