"""Reads numbers and texts of a binary file from front to back, and never beyond its end."""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ouzel.checkpoint.model_files import brief
from ouzel.errors import ModelLoadError


class FileCursor:
    """Keeps a position in a file; integers are little-endian."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self.path = path
        self.position = 0

    @property
    def is_at_end(self) -> bool:
        return self.position == len(self._data)

    def take(self, num_bytes: int) -> bytes:
        begin = self.position
        self.skip(num_bytes)
        return self._data[begin : self.position]

    def skip(self, num_bytes: int) -> None:
        """Moves the position. Raises ModelLoadError beyond the end of the file."""
        if not 0 <= num_bytes <= len(self._data) - self.position:
            raise ModelLoadError(
                f"{self.path} is truncated or broken: it needs {brief(num_bytes)} bytes at "
                f"{self.position} of {len(self._data)}"
            )
        self.position += num_bytes

    def integer(self, kind: str) -> int:
        """Reads an integer of the kind that struct calls `kind`."""
        [value] = struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))
        return int(value)

    def count(self, kind: str, noun: str, limit: int) -> int:
        """Reads a number of things from 0 to `limit`. Raises ModelLoadError."""
        value = self.integer(kind)
        if not 0 <= value <= limit:
            raise ModelLoadError(f"{self.path} must have 0 to {limit} {noun}, found {value}")
        return value

    def text(self, num_bytes: int) -> str:
        try:
            return self.take(num_bytes).decode()
        except UnicodeDecodeError as error:
            raise ModelLoadError(f"{self.path} has a name that is not UTF-8: {error}") from error


@contextmanager
def open_cursor(path: Path) -> Iterator[FileCursor]:
    """Opens a file at its first byte. Raises ModelLoadError if it cannot be read or is empty."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            yield FileCursor(data, path)
    except (OSError, ValueError) as error:
        raise ModelLoadError(f"{path} cannot be read: {error}") from error
