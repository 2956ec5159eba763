"""What a directory takes on the disk, and how it is removed."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def size_of(directory: Path) -> int:
    """Counts the files in it, each once; a link counts as itself, wherever it leads."""
    sizes: dict[tuple[int, int], int] = {}
    for status in statuses(Path(folder, name) for folder, _, names in os.walk(directory) for name in names):
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
    """Removes a directory and all in it, but nothing that its links lead to. Returns what could not be, and why."""
    failures: list[str] = []

    def attempt(action: Callable[[Path], None], path: Path) -> None:
        try:
            action(path)
        except FileNotFoundError:
            pass  # somebody else was faster
        except OSError as error:
            failures.append(f"{path}: {error.strerror}")

    for folder, directories, names in os.walk(directory, topdown=False):
        links = [name for name in directories if Path(folder, name).is_symlink()]
        for name in names + links:
            attempt(Path.unlink, Path(folder, name))
        if not failures:  # else it is not empty
            attempt(Path.rmdir, Path(folder))
    return failures
