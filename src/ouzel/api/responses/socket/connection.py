"""Reads the messages of one WebSocket of the Responses API, until either side closes it."""

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
from ouzel.api.responses.socket.lanes import Lanes
from ouzel.api.responses.socket.messages import (
    Cancel,
    Create,
    Steer,
    decode_envelope,
    read_message,
    read_stream_id,
)
from ouzel.api.responses.socket.outbox import Outbox
from ouzel.api.responses.socket.responder import Responder
from ouzel.api.responses.socket.steering import Steering
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest, OuzelError
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import PreparationThreads


class Connection:
    def __init__(
        self,
        responder: Responder,
        steering: Steering,
        limits: LimitsConfig,
        *,
        share: Share,
        threads: PreparationThreads,
        receive: Receive,
        send: Send,
    ) -> None:
        """Takes an accepted WebSocket. `share` counts the bytes of its unanswered messages."""
        self._responder = responder
        self._steering = steering
        self._limits = limits
        self._share = share
        self._threads = threads
        self._receive = receive
        self._send = send
        self._is_too_old = False

    async def serve(self) -> None:
        """Serves the connection to its end, and then cancels its running responses."""
        try:
            async with asyncio.TaskGroup() as tasks:
                max_bytes = self._limits.max_body_bytes
                lanes = Lanes(
                    tasks,
                    self._responder.respond,
                    self._outbox,
                    share=self._share,
                    max_waiting_bytes=max_bytes,
                )
                ageing = tasks.create_task(self._age(lanes))
                code = await self._read(lanes)
                if code == SERVER_STOPS:
                    await lanes.idle()
                    await self._close(SERVER_STOPS)
                ageing.cancel()
                lanes.close()
        except* ClientDisconnected:
            pass

    async def _read(self, lanes: Lanes) -> int:
        """Reads until the connection ends. Returns the close code."""
        with self._sending() as send:
            while True:
                message = await self._receive()
                if message["type"] == "websocket.disconnect":
                    code: int = message.get("code", NORMAL_END)
                    return code
                await self._take(message.get("text"), lanes, send)

    async def _take(self, text: str | None, lanes: Lanes, send: Send) -> None:
        stream_id = None
        try:
            if text is None:
                raise InvalidRequest("a message must be text, given a binary one")
            encoded = text.encode()
            fields = await self._threads.run(partial(decode_envelope, encoded), len(encoded))
            stream_id = read_stream_id(fields)
            await self._act(fields, encoded, lanes, send)
        except OuzelError as error:
            self._responder.log_refused(error)
            await Outbox(send, stream_id).put_error(error)

    async def _act(self, fields: JsonObject, text: bytes, lanes: Lanes, send: Send) -> None:
        match read_message(fields, text):
            case Create() as create:
                if self._is_too_old:
                    raise SocketTooOld(self._limits.websocket_lifetime_s)
                lanes.add(create)
            case Cancel(response_id):
                self._steering.cancel(response_id)
            case Steer() as steer:
                lane = self._steering.find_lane(steer.response_id)
                await self._steering.steer(steer, Outbox(send, lane))

    async def _age(self, lanes: Lanes) -> None:
        await asyncio.sleep(self._limits.websocket_lifetime_s)
        self._is_too_old = True
        await lanes.idle()
        with self._outbox(None) as outbox:
            await outbox.put_error(SocketTooOld(self._limits.websocket_lifetime_s))
        await self._close(NORMAL_END)

    async def _close(self, code: int) -> None:
        try:
            await self._send({"type": "websocket.close", "code": code})
        except OSError as error:  # ASGI's signal that the client has left
            raise ClientDisconnected from error

    @contextmanager
    def _outbox(self, stream_id: str | None) -> Iterator[Outbox]:
        with self._sending() as send:
            yield Outbox(send, stream_id)

    @contextmanager
    def _sending(self) -> Iterator[Send]:
        """Yields a `send` for the current task, which is cancelled if the client reads nothing."""
        with send_within(self._send, self._limits.write_timeout_s) as send:
            yield send
