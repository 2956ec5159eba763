"""POST /responses."""

from contextlib import ExitStack

from starlette.types import Receive, Scope, Send

from ouzel.api.http.exchange import Exchange, cancelled_on_disconnect, exchange_of, read_body
from ouzel.api.http.framing import Framing
from ouzel.api.responses.event_framing import EventFraming
from ouzel.api.responses.sending import send_events, send_json
from ouzel.config import LimitsConfig
from ouzel.responses.preparer import Preparer
from ouzel.responses.runs import Runs


class CreateResponse:
    """An ASGI app. When the client goes away first, the response is cancelled, unless it is made in the background."""

    def __init__(self, runs: Runs, preparer: Preparer, limits: LimitsConfig, framing: Framing) -> None:
        self._preparer = preparer
        self._runs = runs
        self._limits = limits
        self._framing = framing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._limits
        with self._runs.take_place() as place:
            body = await read_body(
                scope, receive, max_body_bytes=limits.max_body_bytes, timeout_s=limits.body_timeout_s
            )
            async with cancelled_on_disconnect(receive):
                await self._answer(body, exchange_of(scope), place, send)

    async def _answer(self, body: bytes, exchange: Exchange, place: ExitStack, send: Send) -> None:
        prepared = await self._preparer.prepare(body, key_id=exchange.key_id, arrival_s=exchange.arrival_s)
        with self._runs.running(prepared, key_id=exchange.key_id, place=place) as run:
            exchange.follow(run.generation)
            if prepared.is_stream:
                exchange.framing = self._framing
                framing = EventFraming(self._framing, prepared.obfuscates)
                await send_events(run.follow(), framing, send)
            else:
                await send_json(await run.answer(), send)
