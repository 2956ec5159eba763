"""Reads the messages of one session of transcription, until either side closes its WebSocket."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from starlette.types import Receive, Send

from ouzel.api.http.body_budget import Share
from ouzel.api.http.errors import SocketTooOld
from ouzel.api.http.exchange import ClientDisconnected
from ouzel.api.http.server.close_codes import NORMAL_END, SERVER_STOPS
from ouzel.api.http.timed_send import send_within
from ouzel.api.realtime.live_session import LiveSession
from ouzel.api.realtime.messages import parse_message, read_event_id, read_message
from ouzel.api.realtime.outbox import Outbox
from ouzel.api.realtime.turn_transcriber import TurnTranscriber
from ouzel.api.realtime.turns import Turns
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, OuzelError
from ouzel.worker_threads import PreparationThreads


class Connection:
    def __init__(
        self,
        session: LiveSession,
        transcriber: TurnTranscriber,
        limits: LimitsConfig,
        *,
        share: Share,
        threads: PreparationThreads,
        receive: Receive,
        send: Send,
    ) -> None:
        """Takes an accepted WebSocket. `share` counts the bytes of sound in memory."""
        self._session = session
        self._transcriber = transcriber
        self._limits = limits
        self._share = share
        self._threads = threads
        self._receive = receive
        self._send = send
        self._is_too_old = False

    async def serve(self) -> None:
        """Serves the connection to its end, and then cancels its transcriptions."""
        try:
            async with asyncio.TaskGroup() as tasks:
                turns = Turns(
                    tasks, self._transcriber.transcribe, self._outbox, self._session.settle
                )
                self._session.begin(turns, self._share)
                ageing = tasks.create_task(self._age(turns))
                code = await self._read()
                if code == SERVER_STOPS:
                    await turns.idle()
                    await self._close(SERVER_STOPS)
                ageing.cancel()
                turns.close()
        except* ClientDisconnected:
            pass

    async def _read(self) -> int:
        """Reads until the connection ends. Returns the close code."""
        with self._outbox() as outbox:
            await self._session.tell_created(outbox)
            while True:
                message = await self._receive()
                if message["type"] == "websocket.disconnect":
                    code: int = message.get("code", NORMAL_END)
                    return code
                await self._take(message.get("text"), outbox)

    async def _take(self, text: str | None, outbox: Outbox) -> None:
        event_id = None
        try:
            if text is None:
                raise InvalidRequest("a message must be text, given a binary one")
            encoded = text.encode()
            fields = await self._threads.run(partial(parse_message, encoded), len(encoded))
            event_id = read_event_id(fields)
            if self._is_too_old:
                raise SocketTooOld(self._limits.websocket_lifetime_s)
            message = await self._threads.run(partial(read_message, fields), len(encoded))
            await self._session.obey(message, outbox)
        except OuzelError as error:
            self._transcriber.log_refused(error)
            await outbox.put_error(error, event_id)

    async def _age(self, turns: Turns) -> None:
        await asyncio.sleep(self._limits.websocket_lifetime_s)
        self._is_too_old = True
        await turns.idle()
        with self._outbox() as outbox:
            await outbox.put_error(SocketTooOld(self._limits.websocket_lifetime_s))
        await self._close(NORMAL_END)

    async def _close(self, code: int) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code})
        except OSError as error:  # ASGI's signal that the client has left
            raise ClientDisconnected from error

    @contextmanager
    def _outbox(self) -> Iterator[Outbox]:
        """Yields an outbox for the current task, which ends if the client reads nothing."""
        with send_within(self._send, self._limits.write_timeout_s) as send:
            yield Outbox(send)
