"""Measures the memory that a process may still take."""

import os
from pathlib import Path


def available_bytes() -> int:
    """Returns the memory in bytes that is free on the machine, or in its container if less."""
    return min(_machine_available_bytes(), _control_group_available_bytes())


def _machine_available_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS and others: half of the memory, since no call tells how much is free
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _control_group_available_bytes() -> int:
    root = Path("/sys/fs/cgroup")
    try:
        limit = int((root / "memory.max").read_text(encoding="ascii"))  # "max": no limit
        statistics = dict(
            line.split() for line in (root / "memory.stat").read_text(encoding="ascii").splitlines()
        )
        return max(0, limit - int(statistics["anon"]))
    except (OSError, ValueError, KeyError):
        return 2**63 - 1
