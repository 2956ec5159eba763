"""Writes the command of a sandbox made with gVisor, which the operator installs beside bubblewrap.

1.  gVisor is a kernel for the programs inside: their system calls never reach the kernel of the
    machine. Its program is runsc, and the description of a sandbox is a bundle (config.json).
2.  runsc itself runs inside of bubblewrap: in its own user, processes, mounts and network, as a
    user who is root there only. Its state is in memory there, and ends with bubblewrap.
3.  runsc shows the programs inside one directory of bubblewrap's file system, read only. Writable
    are file systems in memory of gVisor, with a fixed size.
4.  The programs inside have no network, no capabilities, and cannot get any.
"""

import shutil
from pathlib import Path, PurePosixPath

import msgspec

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

BUNDLE = "/bundle/config.json"  # path in bubblewrap's file system
SYSTEM = "/system"  # the directory of bubblewrap's file system that the programs inside see
_MOUNT_POINTS = ("/proc", "/sys", "/dev", "/dev/shm", "/tmp", WORK_DIRECTORY)


def find_runsc() -> Path:
    """Returns the program of gVisor. Raises SandboxUnavailable."""
    found = shutil.which("runsc")
    if found is None:
        raise SandboxUnavailable(
            "there is no program runsc: install gVisor (apt-get install runsc)"
        )
    return Path(found).resolve()


def write_bundle(plan: SandboxPlan, command: list[str]) -> bytes:
    """Returns the description of a sandbox that runs a command (config.json of OCI)."""
    mounts: list[dict[str, object]] = [{"destination": "/proc", "type": "proc"}]
    for place, size in list_file_systems(plan).items():
        options = [f"size={size}", "mode=0700", f"uid={UID}", f"gid={UID}"]
        mounts.append({"destination": place, "type": "tmpfs", "options": options})
    bundle = {
        "ociVersion": "1.0.0",
        "root": {"path": SYSTEM, "readonly": True},
        "hostname": "sandbox",
        "process": {
            "user": {"uid": UID, "gid": UID},
            "args": command,
            "env": [f"{name}={value}" for name, value in write_environment().items()],
            "cwd": WORK_DIRECTORY,
            "noNewPrivileges": True,
            "capabilities": {},
        },
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": each} for each in ("pid", "network", "ipc", "uts", "mount")]
        },
    }
    return msgspec.json.encode(bundle)


def write_command(
    bubblewrap: Path,
    runsc: Path,
    plan: SandboxPlan,
    *,
    texts: dict[str, int],
    bundle_fd: int,
    info_fd: int,
) -> list[str]:
    """Returns the command line.

    `texts` has the open file of each small file by its path inside; `bundle_fd` is the open
    description. `info_fd` receives the id of bubblewrap's first process. Standard input goes to
    the command inside.
    """
    arguments = [str(bubblewrap), "--unshare-all", "--unshare-user"]
    # Root of this user namespace only: runsc makes the namespaces of gVisor with these rights, and
    # gives them up before any code runs.
    arguments += ["--uid", "0", "--gid", "0", "--cap-add", "ALL", "--hostname", "sandbox"]
    arguments += ["--die-with-parent", "--new-session", "--clearenv"]
    for place in _list_directories(plan, texts):
        arguments += ["--perms", "0755", "--dir", f"{SYSTEM}{place}"]
    for shown in list_shown(plan, SYSTEM):
        arguments += shown
    for path, fd in texts.items():
        arguments += ["--perms", "0444", "--ro-bind-data", str(fd), f"{SYSTEM}{path}"]
    arguments += ["--ro-bind-data", str(bundle_fd), BUNDLE, "--ro-bind", str(runsc), "/runsc"]
    arguments += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp"]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--info-fd", str(info_fd), "--"]
    arguments += ["/runsc", "--rootless", "--root", "/run/runsc", "--network", "none"]
    arguments += ["--ignore-cgroups", "run", "--bundle", str(PurePosixPath(BUNDLE).parent)]
    return [*arguments, "sandbox"]


def _list_directories(plan: SandboxPlan, texts: dict[str, int]) -> list[str]:
    """Returns the directories that everybody inside must be able to enter, parents first.

    bubblewrap would make the parents of a file for its own user only, who is another one inside.
    """
    found = {"", *_MOUNT_POINTS}
    for path in (*texts, *map(str, plan.shown_paths), "/etc/x", *_MOUNT_POINTS):
        found.update(str(parent).rstrip("/") for parent in PurePosixPath(path).parents)
    return sorted(found)
