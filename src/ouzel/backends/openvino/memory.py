"""How much memory this process may still take."""

import os
from pathlib import Path


def available_bytes() -> int:
    """What the machine has free or can free, or what the control group (container) leaves, whichever is less."""
    return min(_machine_available_bytes(), _control_group_available_bytes())


def _machine_available_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS and others: half of what is built in, since what is free cannot be asked for
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _control_group_available_bytes() -> int:
    root = Path("/sys/fs/cgroup")
    try:
        limit = int((root / "memory.max").read_text(encoding="ascii"))  # "max" when there is none
        statistics = dict(line.split() for line in (root / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - int(statistics["anon"]))
    except (OSError, ValueError, KeyError):
        return 2**63 - 1
