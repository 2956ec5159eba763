"""Shows the progress of a long task: a line in a terminal, or lines in the log."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.observability import log_settings
from ouzel.observability.progress import Progress, is_listened_to, listen_to_progress
from ouzel.observability.progress_bar import amount, progress_bar

logger = logging.getLogger(__name__)

NUM_LINES = 10  # largest number of log lines for one stage
PAUSE_S = 2.0  # shortest time between two log lines, and before the first


class ProgressLog:
    """Logs a line for each tenth of a stage, except for stages of short or unknown length."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stage = ""
        self._num_said = 0
        self._said_at = 0.0

    def tell(self, progress: Progress) -> None:
        if not progress.total_bytes:
            return
        with self._lock:
            now = time.monotonic()
            num_done = progress.done_bytes * NUM_LINES // progress.total_bytes
            if progress.stage != self._stage:
                self._stage, self._num_said, self._said_at = progress.stage, num_done, now
            if num_done <= self._num_said or now - self._said_at < PAUSE_S:
                return
            self._num_said, self._said_at = num_done, now
        sizes = f"{amount(progress.done_bytes)} of {amount(progress.total_bytes)}"
        logger.info("%s: %d %%, %s", progress.stage, num_done * 100 // NUM_LINES, sizes)


@contextmanager
def progress_shown() -> Iterator[None]:
    """Shows the progress of tasks within the block, unless the context has a listener already."""
    if is_listened_to():
        yield
        return
    with progress_bar(is_wanted=log_settings().log_format == "text") as bar:
        if bar is not None:
            yield
            return
        with listen_to_progress(ProgressLog().tell):
            yield
