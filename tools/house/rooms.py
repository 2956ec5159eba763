"""Finds the Python files of the repository and the room that each of them belongs to.

A room is a folder, named by its path from the root of the repository. Below `src` rooms are at most
three folders deep in the package; below `tests`, `tools` and `benchmarks` they are at most one
folder deep. A file in a deeper folder belongs to the room around that folder.
"""

from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

DEPTHS = {"src": 5, "tests": 2, "tools": 2, "benchmarks": 2}  # parts of a room's path, at most
SKIPPED = {"node_modules", "__pycache__"}


def python_files(root: Path = REPOSITORY) -> Iterator[Path]:
    """Yields the paths of all Python files, in order, relative to `root`."""
    for folder in DEPTHS:
        for path in sorted((root / folder).rglob("*.py")):
            relative = path.relative_to(root)
            if not any(part.startswith(".") or part in SKIPPED for part in relative.parts):
                yield relative


def find_room(path: Path) -> str:
    """Returns the room of a file, for example `src/ouzel/api/http`."""
    folders = path.parts[:-1]
    return "/".join(folders[: DEPTHS[folders[0]]])


def is_in(room: str, outer: str) -> bool:
    """Tells whether `room` is `outer` or lies below it."""
    return room == outer or room.startswith(outer + "/")
