"""Measures directories on the disk, and removes them."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path


def measure_size(directory: Path) -> int:
    """Returns the bytes of the files below a directory; a link counts as itself."""
    sizes: dict[tuple[int, int], int] = {}
    for status in statuses(
        Path(folder, name) for folder, _, names in os.walk(directory) for name in names
    ):
        sizes[status.st_dev, status.st_ino] = status.st_size
    return sum(sizes.values())


def statuses(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """Yields the status of each path; a path that another process has removed is left out."""
    for path in paths:
        with suppress(OSError):
            yield path.lstat()


def size_behind(directory: Path) -> int:
    """Returns the bytes of the files below a directory, following links."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def remove(directory: Path) -> list[str]:
    """Removes a directory with its content, but no targets of links.

    Returns the paths that could not be removed, with reasons. The walk holds each folder open, so a
    link that replaces a folder meanwhile is not followed either.
    """
    failures: list[str] = []
    with suppress(FileNotFoundError):
        for folder, directories, names, descriptor in os.fwalk(directory, topdown=False):
            for name in names + directories:
                note_failure(failures, Path(folder, name), partial(remove_entry, name, descriptor))
        if not failures:  # otherwise the directory is not empty
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
        pass  # another process has removed it
    except OSError as error:
        failures.append(f"{path}: {error.strerror}")
