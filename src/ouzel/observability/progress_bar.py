"""Draws a progress bar in the last line of a terminal; log lines appear above the bar.

Rules
1. The bar is drawn on standard error, only if standard error is a terminal and the log is text.
2. A log line of any process first clears its line (`CLEAR_LINE`), so it replaces the bar; the bar
   is then drawn again below. The bar and each log line are written in one piece.
3. Work of less than 0.7 seconds shows no bar.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from ouzel.observability.progress import Progress, listen_to_progress

CLEAR_LINE = "\r\x1b[K"
SHOW_AFTER_S = 0.7
DRAW_EVERY_S = 0.2
_BAR_COLUMNS = 24
_RATE_AFTER_S = 2.0  # rates over a shorter time are not shown: they vary too much


def is_terminal(stream: TextIO) -> bool:
    """Tells whether the stream is a terminal that can clear and redraw a line."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


class ProgressBar:
    """Draws the latest progress from its own thread, so that the time advances between reports."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._latest: Progress | None = None
        self._begin_bytes = 0
        self._begun_at = self._opened_at = time.monotonic()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._keep_drawn, name="progress bar", daemon=True)
        self._thread.start()

    def tell(self, progress: Progress) -> None:
        with self._lock:
            if self._latest is None or self._latest.stage != progress.stage:
                self._begun_at, self._begin_bytes = time.monotonic(), progress.done_bytes
            self._latest = progress

    def close(self) -> None:
        """Stops drawing and clears the line."""
        self._is_closed.set()
        self._thread.join()

    def _keep_drawn(self) -> None:
        is_drawn = False
        while not self._is_closed.wait(DRAW_EVERY_S):
            if time.monotonic() - self._opened_at >= SHOW_AFTER_S:
                is_drawn |= self._draw()
        if is_drawn:
            self._write(CLEAR_LINE)

    def _draw(self) -> bool:
        with self._lock:
            latest, seconds = self._latest, time.monotonic() - self._begun_at
            num_new_bytes = 0 if latest is None else latest.done_bytes - self._begin_bytes
        if latest is None:
            return False
        columns = os.get_terminal_size(self._stream.fileno()).columns
        self._write(CLEAR_LINE + format_line(latest, num_new_bytes, seconds)[: columns - 1])
        return True

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def progress_bar(*, is_wanted: bool = True) -> Iterator[ProgressBar | None]:
    """Shows the progress of the block, if `is_wanted` and standard error is a terminal."""
    if not is_wanted or not is_terminal(sys.stderr):
        yield None
        return
    bar = ProgressBar(sys.stderr)
    try:
        with listen_to_progress(bar.tell):
            yield bar
    finally:
        bar.close()


def format_line(progress: Progress, num_new_bytes: int, seconds: float) -> str:
    """Returns the text of the bar.

    `num_new_bytes` were done in the `seconds` since the stage began; they give the rate.
    """
    if not progress.total_bytes:
        return f"{progress.stage} ... {_minutes(seconds)}"
    share = progress.done_bytes / progress.total_bytes
    num_full = int(share * _BAR_COLUMNS)
    bar = "#" * num_full + "." * (_BAR_COLUMNS - num_full)
    sizes = f"{amount(progress.done_bytes)} of {amount(progress.total_bytes)}"
    line = f"{progress.stage}  [{bar}] {share:4.0%}  {sizes}"
    if num_new_bytes <= 0 or seconds < _RATE_AFTER_S:
        return line
    rate = num_new_bytes / seconds
    seconds_left = (progress.total_bytes - progress.done_bytes) / rate
    return f"{line}  {amount(int(rate))}/s  {_minutes(seconds_left)} left"


def amount(num_bytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if num_bytes >= size:
            count = num_bytes / size
            return f"{count:.3g} {unit}" if count < 999.5 else f"{count:.0f} {unit}"
    return f"{num_bytes} bytes"


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
