"""The processors of this machine, and their time that a container may take, are shared out among several engines.

Sibling threads of a core stay together, and so do the cores of a memory node, as far as that comes out even.
Linux describes them below /sys/devices/system: https://docs.kernel.org/admin-guide/cputopology.html
"""

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

_SYSTEM = Path("/sys/devices/system")


def shares_of_processors(num_shares: int) -> list[tuple[int, ...]]:
    """Returns as many disjoint shares of those that this process may use, which differ by a core at most.

    There are no more shares than processors; on what is no Linux they are empty: the system divides them.
    """
    if not hasattr(os, "sched_getaffinity"):
        return [()] * num_shares
    return divided(cores_of(sorted(os.sched_getaffinity(0))), num_shares)


def num_processors() -> int:
    """Counts those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shares_of_quota(num_shares: int, quota_cores: float | None, num_processors: int) -> list[int]:
    """Returns how many threads each share should have, where a container may take less time than its processors have.

    Each is 0 where there are no fewer; more threads than the quota would all be stopped for a part of each period.
    """
    if quota_cores is None or quota_cores >= num_processors:
        return [0] * num_shares
    num_threads = max(1, int(quota_cores))
    ends = [num_threads * share // num_shares for share in range(num_shares + 1)]
    return [max(1, end - begin) for begin, end in pairwise(ends)]


def cores_of(processors: Sequence[int], system: Path = _SYSTEM) -> list[list[int]]:
    """Returns the processors by cores, and these by memory node and package."""
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


def divided(cores: list[list[int]], num_shares: int) -> list[tuple[int, ...]]:
    """Divides whole cores where there are enough of them, else their processors."""
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
    """Virtual machines may have no such file."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return default
