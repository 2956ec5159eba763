"""What a directory takes on the disk, and how it is removed."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path


def size_of(directory: Path) -> int:
    """Counts the files in it, each once; a link counts as itself, wherever it leads."""
    sizes: dict[tuple[int, int], int] = {}
    for status in statuses(
        Path(folder, name) for folder, _, names in os.walk(directory) for name in names
    ):
        sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def statuses(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """Leaves out what is no longer there: others write and remove files meanwhile."""
    for path in paths:
        with suppress(OSError):
            yield path.lstat()


def size_behind(directory: Path) -> int:
    """Counts the files that its links lead to."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def remove(directory: Path) -> list[str]:
    """Removes a directory and all in it, but nothing that a link leads to. Returns what could not be removed, and why.

    The walk holds each folder open, so no link that takes a folder's place meanwhile is followed either.
    """
    failures: list[str] = []
    with suppress(FileNotFoundError):
        for folder, directories, names, descriptor in os.fwalk(directory, topdown=False):
            for name in names + directories:
                note_failure(failures, Path(folder, name), partial(remove_entry, name, descriptor))
        if not failures:  # else the directory is not empty
            note_failure(failures, directory, directory.rmdir)
    return failures


def remove_entry(name: str, folder: int) -> None:
    """Removes a file, a link or an empty directory of an open folder."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(name, dir_fd=folder)


def note_failure(failures: list[str], path: Path, action: Callable[[], None]) -> None:
    try:
        action()
    except FileNotFoundError:
        pass  # somebody else was faster
    except OSError as error:
        failures.append(f"{path}: {error.strerror}")
