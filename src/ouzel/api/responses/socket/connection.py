"""Reads the messages of one WebSocket of the Responses API, until either side closes it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from starlette.types import Send

from ouzel.api.http.body_budget import Share
from ouzel.api.http.errors import SocketTooOld
from ouzel.api.http.socket_life import SocketLife, encode_text
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
from ouzel.errors import OuzelError
from ouzel.wire.decode import JsonObject
from ouzel.worker_threads import PreparationThreads


class Connection:
    def __init__(
        self,
        life: SocketLife,
        responder: Responder,
        steering: Steering,
        *,
        share: Share,
        threads: PreparationThreads,
        max_waiting_bytes: int,
    ) -> None:
        """`share` counts the bytes of unanswered messages; `max_waiting_bytes` limits them."""
        self._life = life
        self._responder = responder
        self._steering = steering
        self._share = share
        self._threads = threads
        self._max_waiting_bytes = max_waiting_bytes
        self._lanes: Lanes

    async def serve(self) -> None:
        """Serves the connection to its end, and then cancels its running responses."""
        await self._life.serve(self._begin, self._read, _tell_error)

    def _begin(self, tasks: asyncio.TaskGroup) -> Lanes:
        self._lanes = Lanes(
            tasks,
            self._responder.respond,
            self._outbox,
            share=self._share,
            max_waiting_bytes=self._max_waiting_bytes,
        )
        return self._lanes

    async def _read(self, send: Send) -> int:
        while not isinstance(text := await self._life.receive_text(), int):
            await self._take(text, send)
        return text

    async def _take(self, text: str | None, send: Send) -> None:
        stream_id = None
        try:
            encoded = encode_text(text)
            fields = await self._threads.run(partial(decode_envelope, encoded), len(encoded))
            stream_id = read_stream_id(fields)
            await self._act(fields, encoded, send)
        except OuzelError as error:
            self._responder.log_refused(error)
            await Outbox(send, stream_id).put_error(error)

    async def _act(self, fields: JsonObject, text: bytes, send: Send) -> None:
        match read_message(fields, text):
            case Create() as create:
                self._life.check_age()
                self._lanes.add(create)
            case Cancel(response_id):
                self._steering.cancel(response_id)
            case Steer() as steer:
                lane = self._steering.find_lane(steer.response_id)
                await self._steering.steer(steer, Outbox(send, lane))

    @contextmanager
    def _outbox(self, stream_id: str | None) -> Iterator[Outbox]:
        with self._life.sending() as send:
            yield Outbox(send, stream_id)


async def _tell_error(send: Send, error: SocketTooOld) -> None:
    await Outbox(send, None).put_error(error)
