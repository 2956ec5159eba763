"""Shows the progress of a run: a bar on a terminal, else a line every few seconds."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TextIO

from ouzel.bench.measurement import Measurement

_EVERY_S = 0.2
_LINE_EVERY_S = 5.0
_BAR_COLUMNS = 24


class Progress:
    """Counts requests as they begin and end."""

    def __init__(self, num_requests: int) -> None:
        self._num_requests = num_requests
        self._num_begun = 0
        self._num_ended = 0
        self._num_failed = 0
        self._num_tokens = 0
        self._start_s = time.perf_counter()

    def begin(self) -> None:
        self._num_begun += 1

    def end(self, measurement: Measurement) -> None:
        self._num_ended += 1
        self._num_failed += not measurement.is_complete
        self._num_tokens += measurement.output_len if measurement.is_complete else 0

    def line(self) -> str:
        num_filled = _BAR_COLUMNS * self._num_ended // max(self._num_requests, 1)
        bar = "█" * num_filled + "·" * (_BAR_COLUMNS - num_filled)
        return f"{bar} {self.counts()}"

    def counts(self) -> str:
        """Returns the numbers of requests, the speed and the time, without a bar."""
        taken_s = max(time.perf_counter() - self._start_s, 1e-9)
        failed = f", {self._num_failed} failed" if self._num_failed else ""
        running = self._num_begun - self._num_ended
        counts = f"{self._num_ended}/{self._num_requests}{failed}, {running} running"
        return f"{counts}, {self._num_tokens / taken_s:.1f} tokens/s, {taken_s:.0f} s"


@asynccontextmanager
async def show_progress(progress: Progress, stream: TextIO) -> AsyncGenerator[None, None]:
    """Shows the progress while the block runs; at the end the line of a terminal is cleared."""
    is_terminal = stream.isatty()
    drawing = asyncio.create_task((_draw if is_terminal else _write_lines)(progress, stream))
    try:
        yield
    finally:
        drawing.cancel()
        with suppress(asyncio.CancelledError):
            await drawing
        _write(stream, "\r\x1b[K" if is_terminal else f"{progress.counts()}\n")


async def _draw(progress: Progress, stream: TextIO) -> None:
    while True:
        _write(stream, f"\r\x1b[K{progress.line()[: _columns(stream) - 1]}")
        await asyncio.sleep(_EVERY_S)


async def _write_lines(progress: Progress, stream: TextIO) -> None:
    while True:
        await asyncio.sleep(_LINE_EVERY_S)
        _write(stream, f"{progress.counts()}\n")


def _write(stream: TextIO, text: str) -> None:
    """Writes at once; a closed pipe is ignored, because the measurement must go on."""
    with suppress(OSError):
        stream.write(text)
        stream.flush()


def _columns(stream: TextIO) -> int:
    """Returns the width of the terminal; a longer line could not be cleared."""
    return os.get_terminal_size(stream.fileno()).columns or 80  # some terminals report 0
