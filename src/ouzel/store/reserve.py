"""A file keeps room on the disk, so that what is deleted when nothing else fits any more can be written down.

SQLite needs room to delete: for its log, before anything becomes free.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

RESERVE_BYTES = 8 * 2**20  # more than the log of the greatest transaction of `retention.py`


class Reserve:
    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}-reserve")

    def take(self) -> None:
        """Makes the file if it is not there, or does without it where the disk is full by now."""
        try:
            self._make()
        except FileExistsError:
            return
        except OSError as error:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
            logger.warning("no room can be kept for deleting from the store: %s", error)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Gives the room free while the block runs."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        try:
            yield
        finally:
            self.take()

    def _make(self) -> None:
        descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            if hasattr(
                os, "posix_fallocate"
            ):  # zeros written to a file system that compresses keep no room
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            else:
                os.write(descriptor, os.urandom(RESERVE_BYTES))
        finally:
            os.close(descriptor)
