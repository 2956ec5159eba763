"""Transcribes a turn: takes a place in the queue of its model, and sends the text as events."""

import logging
from contextlib import aclosing
from http import HTTPStatus

from msgspec import UNSET

from ouzel.api.endpoint.on_demand import find_name, hold_chosen
from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import CLIENT_CLOSED_REQUEST, ClientDisconnected, Exchange
from ouzel.api.http.faults import make_fault
from ouzel.api.http.refusal_reason import make_refusal_reason
from ouzel.api.http.request_log import log_exchange
from ouzel.api.http.request_span import end_message_span
from ouzel.api.http.socket_exchanges import SocketExchanges
from ouzel.api.realtime.events import (
    ErrorFacts,
    ServerEvent,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from ouzel.api.realtime.outbox import Outbox
from ouzel.api.realtime.speech_models import SpeechModels
from ouzel.api.realtime.turns import Turn
from ouzel.api.speech.run import SpeechRun
from ouzel.errors import STOPS, OuzelError
from ouzel.observability import request_id_in_scope, span_in_scope
from ouzel.transcription.events import SegmentDone, TextDelta, Transcription, TranscriptionEvent
from ouzel.wire.logprobs import token_text
from ouzel.wire.transcription_objects import write_logprobs, write_usage

_NAME = "transcription"
logger = logging.getLogger(__name__)


class TurnTranscriber:
    """Transcribes the turns of one session. `exchange` is the exchange of the handshake."""

    def __init__(self, models: SpeechModels, *, exchange: Exchange, path: str) -> None:
        self._models = models
        self._path = path
        self._exchanges = SocketExchanges(exchange, path)

    async def transcribe(self, turn: Turn, outbox: Outbox) -> None:
        """Sends the events of a turn; its last one tells its text or its error.

        Raises ClientDisconnected.
        """
        exchange = self._exchanges.make_next()
        exchange.audio_s = turn.sound.duration_s
        request_id_in_scope.set(exchange.request_id)
        connection_span = span_in_scope.get()
        span = (
            None
            if connection_span is None
            else connection_span.child(_NAME, start_s=exchange.arrival_s)
        )
        span_in_scope.set(span)
        exchanges = self._models.catalogue.shared.exchanges
        try:
            with exchanges.track(exchange, f"{_NAME} {self._path}"):
                await self._hold_model(turn, exchange, outbox)
            exchange.status = HTTPStatus.OK
        except ClientDisconnected:
            exchange.status = CLIENT_CLOSED_REQUEST
            raise
        except STOPS:
            raise
        # broad: the session, and its other turns, outlive one turn
        except BaseException as error:
            if not isinstance(error, OuzelError):
                logger.error("unexpected error", exc_info=error)
            exchange.refusal = make_refusal_reason(error)
            exchange.status = await put_failure(turn.item_id, error, outbox)
        finally:
            if exchange.status is None:  # the whole connection ends
                exchange.status = CLIENT_CLOSED_REQUEST
            log_exchange(exchange, _NAME, self._path)
            if span is not None:
                end_message_span(span, exchange, _NAME)
            span_in_scope.set(connection_span)

    def log_refused(self, error: OuzelError) -> None:
        """Logs a message that is invalid, or was refused before it became a request."""
        self._exchanges.log_refused(error)

    async def _hold_model(self, turn: Turn, exchange: Exchange, outbox: Outbox) -> None:
        async def choose() -> Services:
            return self._models.choose(turn.model_name)

        on_demand = self._models.catalogue.on_demand
        if on_demand is None:
            await self._run(await choose(), turn, exchange, outbox)
            return
        name = await find_name(on_demand, choose)
        async with hold_chosen(on_demand, choose, name) as (services, _):
            await self._run(services, turn, exchange, outbox)

    async def _run(
        self, services: Services, turn: Turn, exchange: Exchange, outbox: Outbox
    ) -> None:
        with services.admission.take_place():
            events = self._models.find_transcriber(services).transcribe(
                turn.sound,
                turn.options,
                request_id=exchange.request_id,
                key_id=exchange.key_id,
                arrival_s=exchange.arrival_s,
            )
            run = SpeechRun(services.model.names[0], events, exchange.arrival_s)
            exchange.other_work = run
            writer = _EventWriter(services, turn)
            async with aclosing(run.events()) as following:
                async for event in following:
                    written = writer.write(event)
                    if written is not None:
                        await outbox.put(written)


class _EventWriter:
    """Writes the events of one turn."""

    def __init__(self, services: Services, turn: Turn) -> None:
        self._model = services.model
        self._item_id = turn.item_id
        self._has_logprobs = turn.options.num_logprobs is not None
        self._has_begun = False  # a part of the text was sent

    def write(self, event: TranscriptionEvent) -> ServerEvent | None:
        if isinstance(event, SegmentDone):
            return None
        logprobs = (
            write_logprobs(event.logprobs, self._model, token_text(self._model, as_token_ids=False))
            if self._has_logprobs
            else UNSET
        )
        if isinstance(event, Transcription):
            return TranscriptionCompleted(
                item_id=self._item_id,
                transcript=event.text.strip(),
                usage=write_usage(event.usage),
                logprobs=logprobs,
            )
        return self._write_delta(
            event, TranscriptionDelta(item_id=self._item_id, delta="", logprobs=logprobs)
        )

    def _write_delta(self, event: TextDelta, delta: TranscriptionDelta) -> ServerEvent | None:
        delta.delta = event.text if self._has_begun else event.text.lstrip()
        self._has_begun = self._has_begun or bool(delta.delta)
        return delta if delta.delta or event.logprobs else None


async def put_failure(item_id: str, error: BaseException, outbox: Outbox) -> int:
    """Sends the error of a turn, and returns its status."""
    fault = make_fault(error)
    await outbox.put(TranscriptionFailed(item_id=item_id, error=ErrorFacts.of(fault)))
    return fault.status
