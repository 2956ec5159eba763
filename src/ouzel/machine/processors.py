"""Divides the processors of this machine, or a container's quota of them, among several engines.

Sibling threads of a core stay together, and the cores of a memory node if the shares allow it.
Linux describes them below /sys/devices/system: https://docs.kernel.org/admin-guide/cputopology.html
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")


def divide_processors(num_shares: int) -> list[tuple[int, ...]]:
    """Divides the usable processors into disjoint shares, whose sizes differ by at most a core.

    `num_shares` must not exceed the number of processors. On systems other than Linux the shares
    are empty: the system divides its processors itself.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [()] * num_shares
    return divide_cores(group_by_cores(sorted(os.sched_getaffinity(0))), num_shares)


def num_processors() -> int:
    """Returns the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def divide_quota(num_shares: int, quota_cores: float | None, num_processors: int) -> list[int]:
    """Returns the number of threads of each share, if a container has a CPU quota.

    The numbers are 0 if the quota covers all processors. More threads than the quota would all be
    stopped for a part of each period.
    """
    if quota_cores is None or quota_cores >= num_processors:
        return [0] * num_shares
    num_threads = max(1, int(quota_cores))
    ends = [num_threads * share // num_shares for share in range(num_shares + 1)]
    return [max(1, end - begin) for begin, end in pairwise(ends)]


def group_by_cores(processors: Sequence[int], system: Path = _SYSTEM) -> list[list[int]]:
    """Groups the processors by cores, and sorts the cores by memory node and package."""
    nodes = _nodes(system)
    cores: dict[tuple[int, int, int], list[int]] = {}
    for processor in processors:
        topology = system / f"cpu/cpu{processor}/topology"
        package, core = (
            _number(topology / "physical_package_id", 0),
            _number(topology / "core_id", processor),
        )
        cores.setdefault((nodes.get(processor, 0), package, core), []).append(processor)
    return [cores[key] for key in sorted(cores)]


def divide_cores(cores: list[list[int]], num_shares: int) -> list[tuple[int, ...]]:
    """Divides whole cores if there are enough of them, and single processors otherwise."""
    units = (
        cores if len(cores) >= num_shares else [[processor] for core in cores for processor in core]
    )
    begins = [len(units) * share // num_shares for share in range(num_shares + 1)]
    parts = [units[begin:end] for begin, end in pairwise(begins)]
    return [tuple(processor for unit in part for processor in unit) for part in parts]


def _nodes(system: Path) -> dict[int, int]:
    """Returns the memory node of each processor."""
    nodes = {}
    for directory in sorted(system.glob("node/node[0-9]*")):
        text = (directory / "cpulist").read_text().strip()
        for part in text.split(",") if text else ():
            first, _, last = part.partition("-")
            for processor in range(int(first), int(last or first) + 1):
                nodes[processor] = int(directory.name.removeprefix("node"))
    return nodes


def _number(file: Path, default: int) -> int:
    """Reads a number; returns the default if the file is missing, as in virtual machines."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return default
