"""Shows the progress of a command: a bar on a terminal, else a line every few seconds."""

import os
import time
from contextlib import suppress
from typing import TextIO

_BAR_COLUMNS = 24
_LINE_EVERY_S = 5.0
_CLEAR_LINE = "\r\x1b[K"
_MINUTE_S, _HOUR_S = 60, 3600


class ProgressLine:
    """The last line of a stream. Without a terminal the first line is written after a while."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._written_s: float | None = None

    def show(self, text: str, share_done: float) -> None:
        """Shows the text, with a bar of which `share_done` (0 to 1) is filled."""
        now_s = time.monotonic()
        if self._is_terminal:
            filled = int(_BAR_COLUMNS * min(share_done, 1.0))
            bar = "█" * filled + "·" * (_BAR_COLUMNS - filled)
            columns = os.get_terminal_size(self._stream.fileno()).columns or 80
            self._write(f"{_CLEAR_LINE}{f'{bar} {text}'[: columns - 1]}")
        elif self._written_s is None:
            self._written_s = now_s
        elif now_s - self._written_s >= _LINE_EVERY_S:
            self._written_s = now_s
            self._write(f"{text}\n")

    def clear(self) -> None:
        if self._is_terminal:
            self._write(_CLEAR_LINE)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a closed pipe must not end the command
            self._stream.write(text)
            self._stream.flush()


def describe_time(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    return f"{seconds / _HOUR_S:.1f} h"
