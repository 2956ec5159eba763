"""How much memory a process may still take, of the machine and of its container."""

import os
from pathlib import Path


def available_bytes() -> int:
    """Returns the memory that the machine has free or can free, or that the control group (container) leaves, if that
    is less."""
    return min(_machine_available_bytes(), _control_group_available_bytes())


def _machine_available_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS and others: half of the built-in memory, since no call tells how much is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _control_group_available_bytes() -> int:
    root = Path("/sys/fs/cgroup")
    try:
        limit = int((root / "memory.max").read_text(encoding="ascii"))  # "max" when there is none
        statistics = dict(
            line.split() for line in (root / "memory.stat").read_text(encoding="ascii").splitlines()
        )
        return max(0, limit - int(statistics["anon"]))
    except (OSError, ValueError, KeyError):
        return 2**63 - 1
