"""Stores named records of bytes in a directory, beyond the life of the process.

 <root>/<identity>/<name>    32 bytes of BLAKE2b, keyed by the identity, over name, content
 and record; then the record
 <root>/<identity>.lock      the process that holds this lock may write; others only read

Rules
1. A record is written under a temporary name and renamed: it is complete or absent. No record is
   written a second time.
2. Each read checks the digest; a damaged record is deleted. The start reads no record: the name and
   length of a file describe it.
3. The files of all identities together have at most `max_bytes`. The least recently used records
   are deleted first: records of other identities, a directory at a time, then own records. The
   modification time of a file is the time of its last use. The sizes of other identities are read
   again from time to time, so the total exceeds `max_bytes` by a few hundredths at most, and not
   for long.
4. One thread reads and one writes; `_index` and `num_bytes` are changed under the lock.
"""

import hashlib
import logging
import os
import shutil
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

DIGEST_BYTES = 32
UNFINISHED = ".unfinished"
_LOOKS = 64  # times that other directories are measured while `max_bytes` are written

Bytes = NDArray[np.uint8]

logger = logging.getLogger(__name__)


class RecordDamaged(Exception):
    """Raised when the digest of a record is wrong."""

    def __init__(self) -> None:
        super().__init__("its digest is wrong")


class RecordFiles:
    """The record files of one `cache_identity`, within the limit for all."""

    def __init__(
        self, root: Path, identity: str, row_bytes: Mapping[str, int], *, max_bytes: int
    ) -> None:
        """Opens the directory of an identity; `row_bytes` has the record length by ending of the
        name.

        Raises OSError if the directory cannot be made or read.
        """
        self._root, self._identity = root, identity
        self._directory = root / identity
        self._key = hashlib.blake2b(identity.encode(), digest_size=DIGEST_BYTES).digest()
        self._max_bytes = max_bytes
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock_file = take_lock(root / f"{identity}.lock")
        self._directory.mkdir(mode=0o700, exist_ok=True)
        self._sizes = {ending: DIGEST_BYTES + num for ending, num in row_bytes.items()}
        self._lock = threading.Lock()
        # name -> bytes of the file; least recently used first
        self._index: OrderedDict[str, int] = OrderedDict()
        # (identity, bytes) of the other directories; None: not yet measured
        self._others: list[tuple[str, int]] | None = None
        # written since the other directories were measured: they may have grown by as much
        self._num_bytes_since_look = 0
        self._last_use_ns = 0  # time of the last use of any own record, as in the files' times
        self.num_bytes = 0  # bytes of own records
        self._read_index()

    @property
    def is_writable(self) -> bool:
        """Tells whether this process holds the lock, so that it may write."""
        return self._lock_file is not None

    def claim(self) -> bool:
        """Takes the lock if it is free, and reads the records of its former holder.

        Returns whether this process holds the lock. Raises OSError.
        """
        if self._lock_file is None:
            self._lock_file = take_lock(self._root / f"{self._identity}.lock")
            if self._lock_file is not None:
                logger.info("prefix cache directory %s: this engine now writes here", self._root)
                # The former holder may have deleted the directory to make room.
                self._directory.mkdir(mode=0o700, exist_ok=True)
                self._read_index()
        return self.is_writable

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self._index)

    def read(self, name: str, content: bytes, buffer: bytearray) -> Bytes:
        """Reads a record into the buffer. Raises RecordDamaged, and OSError if the file is gone."""
        view = memoryview(buffer)[: self._index.get(name, 0)]
        with (self._directory / name).open("rb", buffering=0) as file:
            num_read = file.readinto(view)
        if num_read != len(view) or view[:DIGEST_BYTES] != self._digest(
            name, content, view[DIGEST_BYTES:]
        ):
            raise RecordDamaged
        return np.frombuffer(view, np.uint8)[DIGEST_BYTES:]

    def write(self, name: str, content: bytes, record: Bytes, *, spared: Collection[str]) -> bool:
        """Writes a record.

        Returns False if there is no room without deleting a record in `spared`. Raises OSError.
        """
        size = DIGEST_BYTES + record.nbytes
        if not self._make_room(size, spared=spared):
            return False
        temporary = self._directory / UNFINISHED
        try:
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "wb", buffering=0) as out:
                for part in (self._digest(name, content, record.data), record.data):
                    if out.write(part) != len(part):
                        raise OSError("the file system wrote only a part of the record")
            temporary.rename(self._directory / name)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        with self._lock:
            self._index[name] = size
            self.num_bytes += size
        self._num_bytes_since_look += size
        return True

    def trim(self) -> None:
        """Deletes records beyond `max_bytes`, which may have been larger at an earlier start."""
        self._make_room(0, spared=())

    def note_use(self, names: Iterable[str]) -> None:
        """Marks records as used, the last name as the most recent."""
        now = max(time.time_ns(), self._last_use_ns)  # the clock may have been set back
        for number, name in enumerate(names, start=1):
            self._last_use_ns = now + number
            with self._lock:
                if name not in self._index:
                    continue
                self._index.move_to_end(name)
            # The file may be gone or not ours: its old order then returns at the next start.
            with suppress(OSError):
                os.utime(self._directory / name, ns=(self._last_use_ns, self._last_use_ns))

    def delete(self, name: str) -> None:
        with self._lock:
            self.num_bytes -= self._index.pop(name, 0)
        if self.is_writable:
            with suppress(OSError):
                (self._directory / name).unlink()

    def close(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def _digest(self, name: str, content: bytes, record: memoryview) -> bytes:
        digest = hashlib.blake2b(digest_size=DIGEST_BYTES, key=self._key)
        for part in (name.encode(), content, record):
            digest.update(part)
        return digest.digest()

    def _read_index(self) -> None:
        """Reads the names of the records; deletes truncated records and ignores other files."""
        found, num_cut, num_alien = list[tuple[int, str, int]](), 0, 0
        for name, status in files_in(self._directory):
            size = self._sizes.get(name.rpartition(".")[2])
            if size is None:
                num_alien += name != UNFINISHED
            elif status.st_size != size:
                num_cut += 1
                self.delete(name)
            else:
                found.append((status.st_mtime_ns, name, size))
        found.sort()
        self._last_use_ns = max(self._last_use_ns, *(used_ns for used_ns, _, _ in found[-1:]), 0)
        with self._lock:
            self._index = OrderedDict((name, size) for _, name, size in found)
            self.num_bytes = sum(self._index.values())
        if num_cut:
            logger.warning(
                "prefix cache directory %s: deleted %d records of a wrong length",
                self._directory,
                num_cut,
            )
        if num_alien:
            logger.warning(
                "prefix cache directory %s: ignored %d files that are not records",
                self._directory,
                num_alien,
            )

    def _make_room(self, size: int, *, spared: Collection[str]) -> bool:
        if self._others is None or self._num_bytes_since_look > self._max_bytes // _LOOKS:
            self._others, self._num_bytes_since_look = sorted_others(self._root, self._identity), 0
        while self.num_bytes + sum(num for _, num in self._others) + size > self._max_bytes:
            if removable := next(
                (each for each in self._others if remove_unless_used(self._root, each[0])), None
            ):
                self._others.remove(removable)
                continue
            with self._lock:
                oldest = next(iter(self._index), None)
            if oldest is None or oldest in spared:
                return False
            self.delete(oldest)
        return True


def take_lock(path: Path) -> int | None:
    """Locks a file and returns it open; None if another process holds the lock. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # not inherited by child processes
    try:
        if sys.platform == "win32":
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # the lock is held: POSIX raises the first, Windows the second
    except (BlockingIOError, PermissionError):
        os.close(file)
        return None
    except OSError:
        os.close(file)
        raise
    return file


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    file = take_lock(path)
    try:
        yield file is not None
    finally:
        if file is not None:
            os.close(file)


def sorted_others(root: Path, identity: str) -> list[tuple[str, int]]:
    """Returns name and bytes of the other identities in the directory, least recently used
    first.
    """
    found = []
    for lock in root.glob("*.lock"):
        directory = lock.with_suffix("")
        if lock.stem != identity and directory.is_dir():
            try:
                statuses = [status for _, status in files_in(directory)]
            except FileNotFoundError:  # another server has just removed the directory
                continue
            last_used = max((status.st_mtime_ns for status in statuses), default=0)
            found.append((last_used, lock.stem, sum(status.st_size for status in statuses)))
    return [(name, num_bytes) for _, name, num_bytes in sorted(found)]


def files_in(directory: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yields the files of a directory, without files that another server removes meanwhile.

    Raises OSError if the directory cannot be read.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield entry.name, status


def remove_unless_used(root: Path, identity: str) -> bool:
    """Deletes the records of an identity; returns False if another process holds its lock."""
    with locked(root / f"{identity}.lock") as is_free:
        if is_free:
            logger.info("prefix cache directory %s: deleting %s to make room", root, identity)
            shutil.rmtree(root / identity, ignore_errors=True)
        return is_free
