"""Files that were read are looked at from time to time: what has changed is read again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

Stamp = tuple[int, int, int] | None  # time, size and inode; None where there is no file


@dataclass(frozen=True, slots=True)
class SeenFiles:
    stamps: Mapping[Path, Stamp] = field(default_factory=dict)  # as they were before they were read
    every_s: float = 0.0  # 0: they are not looked at again

    def stamps_now(self) -> Mapping[Path, Stamp]:
        return {path: stamp_of(path) for path in self.stamps}


def stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
