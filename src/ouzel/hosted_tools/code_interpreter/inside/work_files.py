"""Lists, reads, writes and deletes files of the work directory, without following a link.

This runs inside a sandbox; it imports the standard library only.
"""

import contextlib
import os
import stat
from typing import Any  # Any: JSON

WORK = "/mnt/data"
_MAX_LISTED = 1000
_MAX_SCANNED = 20_000
_MAX_DEPTH = 16
_MAX_PATH = 512


def list_files() -> list[list[Any]]:
    """Returns path, size and time of change of the regular files in the work directory."""
    found: list[list[Any]] = []
    num_scanned = 0
    waiting = [("", 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            scanned = os.scandir(os.path.join(WORK, place))
        except OSError:
            continue
        with scanned as entries:
            for entry in entries:
                num_scanned += 1
                path = os.path.join(place, entry.name)
                if num_scanned > _MAX_SCANNED or len(found) >= _MAX_LISTED:
                    return sorted(found)
                if not is_plain(path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth < _MAX_DEPTH:
                        waiting.append((path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    facts = entry.stat(follow_symlinks=False)
                    found.append([path, facts.st_size, facts.st_mtime_ns])
    return sorted(found)


def is_plain(path: str) -> bool:
    """Tells whether a path can be shown to a client: short, printable, valid UTF-8."""
    return len(path) <= _MAX_PATH and path.isprintable()


def open_directory(path: str, *, creates: bool) -> tuple[int, str]:
    """Opens the directory of a path below the work directory; returns it, and the last name.

    No symbolic link is followed.
    """
    *names, last = path.split("/")
    if any(name in ("", ".", "..") for name in (*names, last)) or len(names) > _MAX_DEPTH:
        raise ValueError("not a path of the work directory")
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    current = os.open(WORK, flags)
    try:
        for name in names:
            if creates:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=current)
            inner = os.open(name, flags, dir_fd=current)
            os.close(current)
            current = inner
    except BaseException:
        os.close(current)
        raise
    return current, last


def read_file(path: str, start: int, size: int) -> bytes:
    """Reads a part of a regular file."""
    directory, name = open_directory(path, creates=False)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("it is not a regular file")
        return os.pread(fd, size, start)
    finally:
        os.close(fd)


def write_file(path: str, payload: bytes, *, is_first: bool) -> dict[str, Any]:
    """Writes a piece of a file. The first piece replaces the file that was there."""
    directory, name = open_directory(path, creates=True)
    # Code that runs between two pieces may put a pipe there: opening it must not wait.
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND | os.O_NONBLOCK
    try:
        if is_first:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=directory)
            flags |= os.O_CREAT | os.O_EXCL
        with open(os.open(name, flags, 0o600, dir_fd=directory), "ab") as file:
            file.write(payload)
    finally:
        os.close(directory)
    return {}


def delete_file(path: str) -> dict[str, Any]:
    directory, name = open_directory(path, creates=False)
    try:
        os.unlink(name, dir_fd=directory)
    finally:
        os.close(directory)
    return {}
