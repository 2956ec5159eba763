"""Refuses names from a hub that would become paths outside of the cache.

The hub's own library joins revisions, file names and etags to paths without a check.
"""

from pathlib import PurePosixPath

MAX_CHARS = 255  # longest name of a file on most file systems


def check_file_name(name: str) -> None:
    """Raises ValueError for a path that is absolute or leads upwards."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or not name.isprintable():
        raise ValueError(f"the hub names a file {name!r}, whose path leads out of the cache")


def check_key(kind: str, key: str) -> None:
    """Checks a revision or an etag, which names one file or directory. Raises ValueError."""
    if (
        key in {"", ".", ".."}
        or len(key) > MAX_CHARS
        or "/" in key
        or "\\" in key
        or not key.isprintable()
    ):
        raise ValueError(
            f"the hub gives the {kind} {key[:80]!r}, which cannot be the name of a file"
        )
