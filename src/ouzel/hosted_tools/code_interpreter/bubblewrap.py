"""Writes the command of a sandbox made with bubblewrap, which the operator installs.

1.  Everything is its own: user, process ids, network, mounts, IPC, host name, cgroups. Inside, no
    process has a capability or can get one, and no further user namespace can be made.
2.  The root is an empty file system. Parts of the host, or of the operator's system, are mounted
    into it read only. Afterwards the root, /proc and /dev become read only too.
3.  Writable are /mnt/data, /tmp and /dev/shm only: file systems in memory with a fixed size. They
    end with the sandbox, and no path on the host leads to them.
4.  bubblewrap ends with the server, and everything inside ends with bubblewrap.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from ouzel.hosted_tools.code_interpreter.records import (
    WORK_DIRECTORY,
    SandboxPlan,
    SandboxUnavailable,
)

INSIDE = "/run/ouzel"  # the directory of our programs inside
_PROGRAMS = ("driver.py", "session.py", "work_files.py")
_UID = 1000
_HOST_PARTS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_HOST_ETC = ("alternatives", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "mime.types")
_NOT_OF_ROOT = frozenset({"dev", "proc", "sys", "tmp", "run", "mnt", "boot", "lost+found"})
# Files of /proc that show the host more than needed; they are covered where they exist.
_COVERED = ("/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug")
_NUM_THREADS = 4  # threads of numpy's libraries: each takes address space
_USERS = "user:x:1000:1000:user:/mnt/data:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUPS = "user:x:1000:\nnogroup:x:65534:\n"


def find_bubblewrap() -> Path:
    """Returns the program. Raises SandboxUnavailable."""
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(
            "there is no program bwrap: install the package bubblewrap (apt-get install bubblewrap)"
        )
    if os.stat(found).st_mode & stat.S_ISUID:
        raise SandboxUnavailable(
            f"{found} runs as root for everybody (setuid): remove that bit with chmod u-s, and "
            f"allow user namespaces instead"
        )
    return Path(found)


def list_texts(plan: SandboxPlan) -> dict[str, bytes]:
    """Returns the small files that only the sandbox has, by their paths inside."""
    inside = Path(__file__).parent / "inside"
    texts = {f"{INSIDE}/{name}": (inside / name).read_bytes() for name in _PROGRAMS}
    texts["/etc/passwd"] = _USERS.encode()
    texts["/etc/group"] = _GROUPS.encode()
    return texts


def write_command(
    bubblewrap: Path,
    plan: SandboxPlan,
    *,
    texts: dict[str, int],
    seccomp_fd: int | None,
    info_fd: int,
    command: list[str],
) -> list[str]:
    """Returns the command line.

    `texts` has the open file of each small file by its path inside. `info_fd` receives the id of
    the first process inside.
    """
    arguments = [str(bubblewrap), "--unshare-all", "--unshare-user", "--disable-userns"]
    arguments += ["--uid", str(_UID), "--gid", str(_UID), "--hostname", "sandbox"]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in write_environment().items():
        arguments += ["--setenv", name, value]
    for shown in _list_shown(plan):
        arguments += shown
    for path, fd in texts.items():
        arguments += ["--perms", "0444", "--ro-bind-data", str(fd), path]
    arguments += ["--proc", "/proc"]
    for covered in _COVERED:
        if os.path.exists(covered):
            arguments += ["--ro-bind", "/dev/null", covered]
    arguments += ["--dev", "/dev"]
    size = plan.limits.file_bytes
    for place, part in ((WORK_DIRECTORY, 1), ("/tmp", 2), ("/dev/shm", 4)):
        arguments += ["--perms", "0700", "--size", str(max(size // part, 4096)), "--tmpfs", place]
    for place in ("/dev", "/proc", "/"):
        arguments += ["--remount-ro", place]
    arguments += ["--chdir", WORK_DIRECTORY, "--info-fd", str(info_fd)]
    if seccomp_fd is not None:
        arguments += ["--seccomp", str(seccomp_fd)]
    return [*arguments, "--", *command]


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


def _list_shown(plan: SandboxPlan) -> Iterator[list[str]]:
    if plan.root is None:
        for name in _HOST_PARTS:
            yield from _show(Path("/") / name, f"/{name}")
        for name in _HOST_ETC:
            yield ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    else:
        for path in sorted(plan.root.iterdir()):
            if path.name == "etc":
                yield from _show_etc(path)
            elif path.name not in _NOT_OF_ROOT:
                yield from _show(path, f"/{path.name}")
    for path in plan.shown_paths:
        yield ["--ro-bind", str(path), str(path)]


def _show_etc(etc: Path) -> Iterator[list[str]]:
    """Shows the entries one by one: two files of /etc are the sandbox's own."""
    for path in sorted(etc.iterdir()):
        if path.name not in ("passwd", "group"):
            yield from _show(path, f"/etc/{path.name}")


def _show(path: Path, place: str) -> Iterator[list[str]]:
    if path.is_symlink():
        yield ["--symlink", os.readlink(path), place]
    elif path.exists():
        yield ["--ro-bind", str(path), place]
