"""Files of the hub's cache are put into a directory of the user's: a model repository that another program may read.

A large file is linked, where both directories are on one disk, and copied elsewhere. Small files are always copied:
the user may edit them, and the cache must not change with them.
"""

import fnmatch
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

LARGE_BYTES = 2**20


def copy_snapshot(snapshot: Path, patterns: Iterable[str], target: Path) -> None:
    """Makes the directory `target` of the snapshot's files that match; an older one is removed once all are there.

    Raises OSError. Then the older directory stays as it was.
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
    """Replaces the target, which is never half written. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    content, beside = source.resolve(), target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if content.stat().st_size < LARGE_BYTES or not _is_linked(content, beside):
            shutil.copyfile(content, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _is_linked(content: Path, target: Path) -> bool:
    """Tries to make a link, which disks and file systems may refuse."""
    try:
        os.link(content, target)
    except OSError:
        return False
    return True
