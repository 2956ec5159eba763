"""Shows the progress of a batch: a bar on a terminal, else a line every few seconds."""

import os
import time
from contextlib import suppress
from typing import TextIO

_BAR_COLUMNS = 24
_LINE_EVERY_S = 5.0
_MINUTE_S, _HOUR_S = 60, 3600


class BatchProgress:
    """Writes the counts of a batch to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._begin_s = time.monotonic()
        self._num_at_begin: int | None = None
        self._written_s = -_LINE_EVERY_S

    def show(self, status: str, num_done: int, num_failed: int, num_all: int) -> None:
        """Shows the counts; without a terminal only every few seconds."""
        now_s = time.monotonic()
        if self._num_at_begin is None:
            self._num_at_begin, self._begin_s = num_done, now_s
        text = self._format(status, num_done, num_failed, num_all, now_s)
        if self._is_terminal:
            filled = _BAR_COLUMNS * num_done // max(num_all, 1)
            bar = "█" * filled + "·" * (_BAR_COLUMNS - filled)
            columns = os.get_terminal_size(self._stream.fileno()).columns or 80
            self._write(f"\r\x1b[K{f'{bar} {text}'[: columns - 1]}")
        elif now_s - self._written_s >= _LINE_EVERY_S:
            self._written_s = now_s
            self._write(f"{text}\n")

    def clear(self) -> None:
        if self._is_terminal:
            self._write("\r\x1b[K")

    def _format(
        self, status: str, num_done: int, num_failed: int, num_all: int, now_s: float
    ) -> str:
        failed = f", {num_failed} failed" if num_failed else ""
        text = f"{status}: {num_done}/{num_all}{failed}"
        rate = (num_done - (self._num_at_begin or 0)) / max(now_s - self._begin_s, 1e-3)
        if rate > 0 and num_done < num_all:
            text += f", {rate:.1f}/s, {_describe_time((num_all - num_done) / rate)} left"
        return text

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a closed pipe must not end the batch
            self._stream.write(text)
            self._stream.flush()


def _describe_time(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    return f"{seconds / _HOUR_S:.1f} h"
