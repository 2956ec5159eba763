"""Keeps space on the disk in reserve, so that SQLite can delete rows when the disk is full.

SQLite needs space to delete: it writes the deletion to its log before it frees any space.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

logger = logging.getLogger(__name__)

RESERVE_BYTES = 8 * 2**20  # more than the log of the largest transaction of `retention.py`


class Reserve:
    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}-reserve")

    def take(self) -> None:
        """Makes the file if it does not exist; logs a warning if the disk has no space for it."""
        try:
            self._make()
        except FileExistsError:
            return
        except OSError as error:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)
            logger.warning("no disk space could be reserved for deletions of the store: %s", error)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Frees the reserved space while the block runs."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        try:
            yield
        finally:
            self.take()

    def _make(self) -> None:
        descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            else:
                # Random bytes: a file system that compresses would reserve no space for zeros.
                os.write(descriptor, os.urandom(RESERVE_BYTES))
        finally:
            os.close(descriptor)
