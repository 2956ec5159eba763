"""Shows the progress of a batch: a bar on a terminal, else a line every few seconds."""

import time
from typing import TextIO

from ouzel.terminal.progress_line import ProgressLine, describe_time


class BatchProgress:
    """Writes the counts of a batch to a stream."""

    def __init__(self, stream: TextIO) -> None:
        self._line = ProgressLine(stream)
        self._begin_s = time.monotonic()
        self._num_at_begin: int | None = None

    def show(self, status: str, num_done: int, num_failed: int, num_all: int) -> None:
        """Shows the counts; without a terminal only every few seconds."""
        now_s = time.monotonic()
        if self._num_at_begin is None:
            self._num_at_begin, self._begin_s = num_done, now_s
        text = self._format(status, num_done, num_failed, num_all, now_s)
        self._line.show(text, num_done / max(num_all, 1))

    def clear(self) -> None:
        self._line.clear()

    def _format(
        self, status: str, num_done: int, num_failed: int, num_all: int, now_s: float
    ) -> str:
        failed = f", {num_failed} failed" if num_failed else ""
        text = f"{status}: {num_done}/{num_all}{failed}"
        rate = (num_done - (self._num_at_begin or 0)) / max(now_s - self._begin_s, 1e-3)
        if rate > 0 and num_done < num_all:
            text += f", {rate:.1f}/s, {describe_time((num_all - num_done) / rate)} left"
        return text
