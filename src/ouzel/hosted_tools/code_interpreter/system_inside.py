"""Describes the system that programs inside a sandbox see; it is the same for each kind of sandbox.

It is an empty root, into which parts of the host, or of the operator's system, are mounted read
only by bubblewrap. Small files and the environment are the sandbox's own.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from ouzel.hosted_tools.code_interpreter.records import WORK_DIRECTORY, SandboxPlan

INSIDE = "/run/ouzel"  # the directory of our programs inside
UID = 1000  # user and group inside
_PROGRAMS = ("driver.py", "session.py", "work_files.py")
_HOST_PARTS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_HOST_ETC = ("alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types")
_NOT_OF_ROOT = frozenset({"dev", "proc", "sys", "tmp", "run", "mnt", "boot", "lost+found"})
_NUM_THREADS = 4  # threads of numpy's libraries: each takes address space
_USERS = "user:x:1000:1000:user:/mnt/data:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUPS = "user:x:1000:\nnogroup:x:65534:\n"


def list_texts() -> dict[str, bytes]:
    """Returns the small files that only the sandbox has, by their paths inside."""
    inside = Path(__file__).parent / "inside"
    texts = {f"{INSIDE}/{name}": (inside / name).read_bytes() for name in _PROGRAMS}
    texts["/etc/passwd"] = _USERS.encode()
    texts["/etc/group"] = _GROUPS.encode()
    return texts


def list_file_systems(plan: SandboxPlan) -> dict[str, int]:
    """Returns the sizes of the writable file systems, which are in memory, by their paths."""
    size = plan.limits.file_bytes
    parts = ((WORK_DIRECTORY, 1), ("/tmp", 2), ("/dev/shm", 4))
    return {place: max(size // part, 4096) for place, part in parts}


def write_environment() -> dict[str, str]:
    """Returns all variables that programs inside see."""
    threads = str(_NUM_THREADS)
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "HOME": WORK_DIRECTORY,
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "XDG_CACHE_HOME": "/tmp/cache",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }


def list_shown(plan: SandboxPlan, prefix: str = "") -> Iterator[list[str]]:
    """Yields arguments of bubblewrap that show a system, below `prefix` in its file system."""
    if plan.root is None:
        for name in _HOST_PARTS:
            yield from _show(Path("/") / name, f"{prefix}/{name}")
        for name in _HOST_ETC:
            yield ["--ro-bind-try", f"/etc/{name}", f"{prefix}/etc/{name}"]
    else:
        for path in sorted(plan.root.iterdir()):
            if path.name == "etc":
                yield from _show_etc(path, prefix)
            elif path.name not in _NOT_OF_ROOT:
                yield from _show(path, f"{prefix}/{path.name}")
    for path in plan.shown_paths:
        yield ["--ro-bind", str(path), f"{prefix}{path}"]


def _show_etc(etc: Path, prefix: str) -> Iterator[list[str]]:
    """Shows the entries one by one: two files of /etc are the sandbox's own."""
    for path in sorted(etc.iterdir()):
        if path.name not in ("passwd", "group"):
            yield from _show(path, f"{prefix}/etc/{path.name}")


def _show(path: Path, place: str) -> Iterator[list[str]]:
    if path.is_symlink():
        yield ["--symlink", os.readlink(path), place]
    elif path.exists():
        yield ["--ro-bind", str(path), place]
