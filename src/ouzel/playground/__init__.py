"""The playground's pages, styles and modules are data: a browser gets them as they are."""

from pathlib import Path

DIRECTORY = Path(__file__).parent
_KINDS = (".html", ".css", ".js", ".svg")


def file_names() -> list[str]:
    """Returns the names of all files that a browser may ask for, as `modules/main.js`."""
    paths = sorted(path for path in DIRECTORY.rglob("*") if path.suffix in _KINDS)
    return [path.relative_to(DIRECTORY).as_posix() for path in paths]
