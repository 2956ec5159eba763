"""Runs a writer of sound files in threads beside the event loop."""

from collections.abc import Callable
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.writing.formats import FileFormat
from ouzel.audio.writing.writer import SoundWriter, make_writer
from ouzel.worker_threads import WorkerThreads


class SoundEncoding:
    """Encodes one sound, block after block. The caller closes it."""

    def __init__(
        self, format_: FileFormat, rate: int, threads: WorkerThreads, *, volume: float = 1.0
    ) -> None:
        """`rate` is in Hz; `volume` multiplies the samples."""
        self._format = format_
        self._rate = rate
        self._threads = threads
        self._volume = np.float32(volume)
        self._writer: SoundWriter | None = None  # made in a thread
        self._lock = Lock()  # held by the thread that uses the writer
        self._is_closed = False

    async def write(self, samples: NDArray[np.float32]) -> bytes:
        """Takes float32 [samples], mono, and returns the bytes that are complete.

        Raises Overloaded.
        """
        return await self._run(lambda writer: writer.write(samples * self._volume))

    async def finish(self) -> bytes:
        """Returns the rest of the file. Raises Overloaded."""
        return await self._run(lambda writer: writer.finish())

    def close(self) -> None:
        """Frees the encoder at once, or after the block that a thread still encodes."""
        self._is_closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._close_writer()
            finally:
                self._lock.release()

    async def _run(self, work: Callable[[SoundWriter], bytes]) -> bytes:
        return await self._threads.run(lambda: self._use_writer(work))

    def _use_writer(self, work: Callable[[SoundWriter], bytes]) -> bytes:
        """Runs `work` in this thread."""
        try:
            with self._lock:
                if self._is_closed:  # the client left before this thread began
                    return b""
                if self._writer is None:
                    self._writer = make_writer(self._format, self._rate)
                return work(self._writer)
        finally:
            if self._is_closed:
                with self._lock:
                    self._close_writer()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
