"""An entry of the cache says of which checkpoint it is made, when it was used last, and whether it
is in use.

    made_of.json  the checkpoint's directory and files, and the versions that made the entry. Its time of change is
                  when the entry was used last.

Who reads weights.bin holds a shared lock on it, as long as the file is mapped: `ouzel rm` leaves it
alone then.
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
    path = entry / MADE_OF_FILE
    made_of = MadeOf(
        directory=str(directory.resolve()),
        files=tuple(str(file.resolve()) for file in files),
        ouzel=ouzel.__version__,
        openvino=ov.__version__,
    )
    with suppress(OSError):  # a cache that may only be read tells nobody
        if read_made_of(entry) == made_of:
            os.utime(path)
        else:
            write_whole(path, msgspec.to_builtins(made_of))


def read_made_of(entry: Path) -> MadeOf | None:
    """Returns None where the entry does not say, as those of older versions."""
    try:
        return msgspec.convert(json.loads((entry / MADE_OF_FILE).read_bytes()), MadeOf)
    except (OSError, ValueError):
        return None


def hold(file: IO[bytes]) -> None:
    """Takes the lock, which a mapping of the file keeps when the file is closed."""
    with suppress(OSError):  # some file systems have none
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def is_in_use(path: Path) -> bool:
    """Tells whether somebody holds the file; where that cannot be told, it is not."""
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
