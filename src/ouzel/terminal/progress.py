"""How far a long task is stands in a line at the bottom of a terminal, or in the log where there is none."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.observability import log_settings
from ouzel.observability.progress import Progress, progress_told_to
from ouzel.observability.progress_bar import amount, progress_bar

logger = logging.getLogger(__name__)

NUM_LINES = 10  # at most, of one stage
PAUSE_S = 2.0  # between lines at least, and before the first


class ProgressLog:
    """It logs a line for a tenth of a stage; of a stage that is over soon, or whose size is not known, none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stage = ""
        self._num_said = 0
        self._said_at = 0.0

    def tell(self, progress: Progress) -> None:
        if not progress.total_bytes:
            return
        with self._lock:
            now, num_done = (
                time.monotonic(),
                progress.done_bytes * NUM_LINES // progress.total_bytes,
            )
            if progress.stage != self._stage:
                self._stage, self._num_said, self._said_at = progress.stage, num_done, now
            if num_done <= self._num_said or now - self._said_at < PAUSE_S:
                return
            self._num_said, self._said_at = num_done, now
        sizes = f"{amount(progress.done_bytes)} of {amount(progress.total_bytes)}"
        logger.info("%s: %d %%, %s", progress.stage, num_done * 100 // NUM_LINES, sizes)


@contextmanager
def progress_shown() -> Iterator[None]:
    """Shows the progress of the block's context."""
    with progress_bar(is_wanted=log_settings().log_format == "text") as bar:
        if bar is not None:
            yield
            return
        with progress_told_to(ProgressLog().tell):
            yield
