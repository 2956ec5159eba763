"""Limits a sandbox by a cgroup of version 2, below a cgroup that the operator gives to the server.

A cgroup holds every limit exactly, also for the memory of the kernel. Without one, each
process has limits (setrlimit), and the server measures the sandbox.
"""

import logging
import os
import select
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from ouzel.hosted_tools.code_interpreter.records import SandboxPlan, SandboxUnavailable

logger = logging.getLogger(__name__)

_END_S = 10.0  # killed processes end within milliseconds, unless a disk hangs
_CONTROLLERS = ("memory", "pids")
_MARGIN = 64 * 2**20  # bytes for bubblewrap, the driver and the kernel


def prepare_cgroup(parent: Path) -> None:
    """Lets children of a cgroup have limits. Raises SandboxUnavailable."""
    try:
        offered = (parent / "cgroup.controllers").read_text().split()
        missing = [name for name in _CONTROLLERS if name not in offered]
        if missing:
            raise SandboxUnavailable(
                f"sandbox_cgroup {parent}: it lacks the controllers {', '.join(missing)}"
            )
        enabled = " ".join(f"+{name}" for name in _CONTROLLERS)
        (parent / "cgroup.subtree_control").write_text(enabled)
        for left in parent.glob("ouzel-*"):  # a killed server may have left empty ones
            with suppress(OSError):
                left.rmdir()
    except OSError as error:
        raise SandboxUnavailable(
            f"sandbox_cgroup {parent}: {error.strerror}; it must be a cgroup of version 2 "
            f"without processes that belongs to the server's user"
        ) from error


def make_cgroup(parent: Path, name: str, plan: SandboxPlan) -> Path:
    """Makes the cgroup of one sandbox. Raises OSError."""
    made = parent / f"ouzel-{name}"
    made.mkdir()
    files = 2 * plan.limits.file_bytes if plan.tool == "bubblewrap" else 0  # else counted already
    (made / "memory.max").write_text(str(plan.most_memory_bytes + files + _MARGIN))
    (made / "pids.max").write_text(str(plan.most_threads))
    (made / "memory.oom.group").write_text("1")
    with suppress(OSError):  # a kernel without swap lacks it
        (made / "memory.swap.max").write_text("0")
    return made


def _wait_empty(events: TextIO) -> None:
    """Waits until a cgroup has no processes; the kernel tells every change of this file."""
    changes = select.poll()
    changes.register(events, select.POLLPRI)
    deadline_s = time.monotonic() + _END_S
    while "populated 1" in events.read() and time.monotonic() < deadline_s:
        changes.poll(1000)  # milliseconds
        events.seek(0)


def remove_cgroup(cgroup: Path) -> None:
    """Ends all processes of a cgroup, waits for their end, and removes it."""
    try:
        with suppress(FileNotFoundError):
            (cgroup / "cgroup.kill").write_text("1")
            with open(cgroup / "cgroup.events") as events:
                _wait_empty(events)
        os.rmdir(cgroup)
    except OSError as error:
        logger.warning("the cgroup of a sandbox is left: %s", error)
