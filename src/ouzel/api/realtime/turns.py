"""Transcribes the turns of one session, one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from ouzel.api.realtime.outbox import Outbox
from ouzel.audio.sound import SAMPLE_BYTES, Sound
from ouzel.errors import Overloaded
from ouzel.transcription.options import TranscriptionOptions

_MAX_WAITING = 64
_RETRY_AFTER_S = 1.0


@dataclass(frozen=True, slots=True)
class Turn:
    """Holds a piece of speech until it is transcribed. The queue closes the sound."""

    item_id: str
    sound: Sound
    options: TranscriptionOptions
    model_name: str

    @property
    def num_bytes(self) -> int:
        return self.sound.num_samples * SAMPLE_BYTES


Transcribe = Callable[[Turn, Outbox], Awaitable[None]]
MakeOutbox = Callable[[], AbstractContextManager[Outbox]]


class Turns:
    """`tasks` runs the worker; an exception of `transcribe` ends all."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        transcribe: Transcribe,
        make_outbox: MakeOutbox,
        on_end: Callable[[], None],
    ) -> None:
        """Starts the worker, which calls `on_end` after each turn: its bytes no longer count."""
        self._transcribe = transcribe
        self._make_outbox = make_outbox
        self._on_end = on_end
        self._queue = asyncio.Queue[Turn]()
        self._num_open = 0  # turns that wait or are in progress
        self.num_bytes = 0  # bytes of their sounds
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._worker = tasks.create_task(self._work())

    def add(self, turn: Turn) -> None:
        """Queues a turn. Raises Overloaded if too many wait."""
        if self._queue.qsize() >= _MAX_WAITING:
            raise Overloaded(
                f"{_MAX_WAITING} turns of this session wait, the most allowed",
                retry_after_s=_RETRY_AFTER_S,
            )
        self._queue.put_nowait(turn)
        self._num_open += 1
        self.num_bytes += turn.num_bytes
        self._is_idle.clear()

    async def idle(self) -> None:
        """Waits until no turn waits or is in progress."""
        await self._is_idle.wait()

    def close(self) -> None:
        """Cancels the turn in progress, and drops the turns in the queue."""
        self._worker.cancel()
        while not self._queue.empty():
            self._queue.get_nowait().sound.close()

    async def _work(self) -> None:
        with self._make_outbox() as outbox:
            while True:
                turn = await self._queue.get()
                try:
                    await self._transcribe(turn, outbox)
                finally:
                    turn.sound.close()
                self._num_open -= 1
                self.num_bytes -= turn.num_bytes
                self._on_end()
                if not self._num_open:
                    self._is_idle.set()
