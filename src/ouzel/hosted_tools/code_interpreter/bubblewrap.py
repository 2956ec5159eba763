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
from pathlib import Path

from ouzel.hosted_tools.code_interpreter.records import (
    WORK_DIRECTORY,
    SandboxPlan,
    SandboxUnavailable,
)
from ouzel.hosted_tools.code_interpreter.system_inside import (
    UID,
    list_file_systems,
    list_shown,
    write_environment,
)

# Files of /proc that show the host more than needed; they are covered where they exist.
_COVERED = (
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/interrupts",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/key-users",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/modules",
    "/proc/sched_debug",
    "/proc/timer_list",
)


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
    arguments += ["--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox"]
    arguments += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in write_environment().items():
        arguments += ["--setenv", name, value]
    for shown in list_shown(plan):
        arguments += shown
    for path, fd in texts.items():
        arguments += ["--perms", "0444", "--ro-bind-data", str(fd), path]
    arguments += ["--proc", "/proc"]
    for covered in _COVERED:
        if os.path.exists(covered):
            arguments += ["--ro-bind", "/dev/null", covered]
    arguments += ["--dev", "/dev"]
    for place, size in list_file_systems(plan).items():
        arguments += ["--perms", "0700", "--size", str(size), "--tmpfs", place]
    for place in ("/dev", "/proc", "/"):
        arguments += ["--remount-ro", place]
    arguments += ["--chdir", WORK_DIRECTORY, "--info-fd", str(info_fd)]
    if seccomp_fd is not None:
        arguments += ["--seccomp", str(seccomp_fd)]
    return [*arguments, "--", *command]
