"""Reads the messages of one session of transcription, until either side closes its WebSocket."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from starlette.types import Send

from ouzel.api.http.body_budget import Share
from ouzel.api.http.errors import SocketTooOld
from ouzel.api.http.socket_life import SocketLife, encode_text
from ouzel.api.realtime.live_session import LiveSession
from ouzel.api.realtime.messages import parse_message, read_event_id, read_message
from ouzel.api.realtime.outbox import Outbox
from ouzel.api.realtime.turn_transcriber import TurnTranscriber
from ouzel.api.realtime.turns import Turns
from ouzel.errors import OuzelError
from ouzel.worker_threads import PreparationThreads


class Connection:
    def __init__(
        self,
        life: SocketLife,
        session: LiveSession,
        transcriber: TurnTranscriber,
        *,
        share: Share,
        threads: PreparationThreads,
    ) -> None:
        """`share` counts the bytes of sound in memory."""
        self._life = life
        self._session = session
        self._transcriber = transcriber
        self._share = share
        self._threads = threads

    async def serve(self) -> None:
        """Serves the connection to its end, and then cancels its transcriptions."""
        await self._life.serve(self._begin, self._read, _tell_error)

    def _begin(self, tasks: asyncio.TaskGroup) -> Turns:
        settle = self._session.settle
        turns = Turns(tasks, self._transcriber.transcribe, self._outbox, settle)
        self._session.begin(turns, self._share)
        return turns

    async def _read(self, send: Send) -> int:
        outbox = Outbox(send)
        await self._session.tell_created(outbox)
        while not isinstance(text := await self._life.receive_text(), int):
            await self._take(text, outbox)
        return text

    async def _take(self, text: str | None, outbox: Outbox) -> None:
        event_id = None
        try:
            encoded = encode_text(text)
            fields = await self._threads.run(partial(parse_message, encoded), len(encoded))
            event_id = read_event_id(fields)
            self._life.check_age()
            message = await self._threads.run(partial(read_message, fields), len(encoded))
            await self._session.obey(message, outbox)
        except OuzelError as error:
            self._transcriber.log_refused(error)
            await outbox.put_error(error, event_id)

    @contextmanager
    def _outbox(self) -> Iterator[Outbox]:
        """Yields an outbox for the current task, which ends if the client reads nothing."""
        with self._life.sending() as send:
            yield Outbox(send)


async def _tell_error(send: Send, error: SocketTooOld) -> None:
    await Outbox(send).put_error(error)
