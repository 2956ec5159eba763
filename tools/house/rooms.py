"""Finds the Python files and documents of the repository, and the room of each.

A room is a folder, named by its path from the root of the repository. Below `src` rooms are at most
three folders deep in the package; below `tests`, `tools` and `benchmarks` they are at most one
folder deep. A file in a deeper folder belongs to the room around that folder. Documents belong to
their first folder, and to the room `.` if they are in the root.
"""

from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

DEPTHS = {"src": 5, "tests": 2, "tools": 2, "benchmarks": 2}  # parts of a room's path, at most
SKIPPED = {"node_modules", "__pycache__", "decisions"}
DOCUMENT_FOLDERS = ("benchmarks", "deploy", "docs", "src", "tests", "tools")
# Records of the past, and documents that are generated from code and tests.
SKIPPED_DOCUMENTS = {"CHANGELOG.md", "RESULTS.md", "conformance.md", "fields.md"}


def python_files(root: Path = REPOSITORY) -> Iterator[Path]:
    """Yields the paths of all Python files, in order, relative to `root`."""
    for folder in DEPTHS:
        yield from _files(root, folder, "*.py")


def documents(root: Path = REPOSITORY) -> Iterator[Path]:
    """Yields the paths of the Markdown documents that people write, relative to `root`."""
    found = [path.relative_to(root) for path in sorted(root.glob("*.md"))]
    for folder in DOCUMENT_FOLDERS:
        found.extend(_files(root, folder, "*.md"))
    return (path for path in found if path.name not in SKIPPED_DOCUMENTS)


def _files(root: Path, folder: str, pattern: str) -> Iterator[Path]:
    for path in sorted((root / folder).rglob(pattern)):
        relative = path.relative_to(root)
        if not any(part.startswith(".") or part in SKIPPED for part in relative.parts):
            yield relative


def find_room(path: Path) -> str:
    """Returns the room of a file, for example `src/ouzel/api/http`."""
    folders = path.parts[:-1]
    if path.suffix == ".md":
        return folders[0] if folders else "."
    return "/".join(folders[: DEPTHS[folders[0]]])


def is_in(room: str, outer: str) -> bool:
    """Tells whether `room` is `outer` or lies below it."""
    return room == outer or room.startswith(outer + "/")
