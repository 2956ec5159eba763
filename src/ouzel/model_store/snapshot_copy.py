"""Copies files of the hub's cache into a model repository of the user, for other programs.

A large file is linked if both directories are on one disk, and copied otherwise. Small files are
always copied: the user may edit them, and the cache must not change with them.
"""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

LARGE_BYTES = 2**20


def copy_snapshot(snapshot: Path, patterns: Iterable[str], target: Path) -> None:
    """Copies the matching files to `target`, and replaces an older directory at the end.

    Raises OSError. If copying fails, the older directory is unchanged.
    """
    wanted = [*patterns]
    files = [path.relative_to(snapshot) for path in snapshot.rglob("*") if path.is_file()]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as beside:
        made = Path(beside, "new")
        made.mkdir()
        for name in files:
            if any(fnmatch.fnmatchcase(name.as_posix(), pattern) for pattern in wanted):
                copy_file(snapshot / name, made / name)
        if target.exists():
            target.rename(Path(beside, "old"))
        made.rename(target)


def copy_file(source: Path, target: Path) -> None:
    """Replaces the target at once, so that it is never half written. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    content, beside = source.resolve(), target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if content.stat().st_size < LARGE_BYTES or not _is_linked(content, beside):
            shutil.copyfile(content, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _is_linked(content: Path, target: Path) -> bool:
    """Tries to make a hard link, which some file systems refuse."""
    try:
        os.link(content, target)
    except OSError:
        return False
    return True
