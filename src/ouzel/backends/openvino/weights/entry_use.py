"""Notes the checkpoint and the last use of a cache entry, and tells whether it is in use.

The file made_of.json has the checkpoint's directory and files, and the versions that made the
entry. Its time of change is the time of the entry's last use. A process that maps weights.bin holds
a shared lock on it, so that `ouzel rm` leaves the entry alone.
"""

import fcntl
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

import ouzel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.entry_check import WEIGHTS_FILE, write_whole

MADE_OF_FILE = "made_of.json"


class MadeOf(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    files: tuple[str, ...]
    ouzel: str
    openvino: str


def note_use(entry: Path, directory: Path, files: Sequence[Path]) -> None:
    """Writes made_of.json, or only sets its time if it is up to date."""
    path = entry / MADE_OF_FILE
    made_of = MadeOf(
        directory=str(directory.resolve()),
        files=tuple(str(file.resolve()) for file in files),
        ouzel=ouzel.__version__,
        openvino=ov.__version__,
    )
    with suppress(OSError):  # a read-only cache stays as it is
        if read_entry_source(entry) == made_of:
            os.utime(path)
        else:
            write_whole(path, msgspec.to_builtins(made_of))


def read_entry_source(entry: Path) -> MadeOf | None:
    """Returns the contents of made_of.json, None if it is missing, as in entries of older
    versions.
    """
    try:
        return msgspec.convert(json.loads((entry / MADE_OF_FILE).read_bytes()), MadeOf)
    except (OSError, ValueError):
        return None


def hold(file: IO[bytes]) -> None:
    """Takes a shared lock, which a mapping of the file keeps when the file is closed."""
    with suppress(OSError):  # some file systems have no locks
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_in_use(path: Path) -> bool:
    """Tells whether some process has locked the file; False on file systems without locks."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def is_entry_in_use(entry: Path) -> bool:
    return is_in_use(entry / WEIGHTS_FILE)
