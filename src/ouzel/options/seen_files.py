"""Notices changes of files that were read, by their time, size and inode."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Stamp = tuple[int, int, int] | None  # time, size and inode; None: the file does not exist


@dataclass(frozen=True, slots=True)
class SeenFiles:
    stamps: Mapping[Path, Stamp] = field(default_factory=dict)  # taken before the files were read
    every_s: float = 0.0  # seconds between two looks; 0: never look again

    def stamps_now(self) -> Mapping[Path, Stamp]:
        return {path: read_stamp(path) for path in self.stamps}


def read_stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
