"""Reads the processor, the memory and the limits of the container from files of Linux.

Each function takes the root directory, `/` by default. Unknown values are None or empty.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# The flags of /proc/cpuinfo for fast matrices, and their usual names; the last three are ARM's.
FEATURES = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx512_vnni": "AVX-512 VNNI",
    "avx512_bf16": "AVX-512 bf16",
    "amx_int8": "AMX int8",
    "amx_bf16": "AMX bf16",
    "asimddp": "dot product",
    "i8mm": "int8 matrices",
    "bf16": "bf16",
}
ROOT = Path("/")
_NO_LIMIT_BYTES = 2**60  # cgroups of version 1 write a number above this for "no limit"


@dataclass(frozen=True, slots=True)
class Processor:
    name: str
    num_cores: int  # logical cores of the machine
    num_usable_cores: int  # logical cores on which this process may run
    num_physical_cores: int | None
    num_numa_nodes: int
    features: tuple[str, ...]
    quota_cores: float | None  # CPU quota of the container, in cores

    @property
    def multiplies_int8(self) -> bool:
        return any(
            name in self.features
            for name in ("AVX-VNNI", "AVX-512 VNNI", "AMX int8", "dot product")
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """Sizes are in bytes."""

    total: int
    available: int
    limit: int | None  # the container's limit, if it is lower than the total
    swap_used: int


def read_processor(root: Path = ROOT) -> Processor:
    lines = [line.partition(":") for line in _text(root / "proc/cpuinfo").splitlines()]
    facts = {name.strip(): value.strip() for name, _, value in lines}
    words = set(f"{facts.get('flags', '')} {facts.get('Features', '')}".split())
    siblings = {
        path.read_text().strip()
        for path in root.glob("sys/devices/system/cpu/cpu*/topology/thread_siblings_list")
    }
    return Processor(
        name=facts.get("model name") or facts.get("Hardware") or "unknown",
        num_cores=sum(name.strip() == "processor" for name, _, _ in lines) or os.cpu_count() or 1,
        num_usable_cores=len(os.sched_getaffinity(0)),
        num_physical_cores=len(siblings) or None,
        num_numa_nodes=len([*root.glob("sys/devices/system/node/node[0-9]*")]) or 1,
        features=tuple(label for flag, label in FEATURES.items() if flag in words),
        quota_cores=quota_cores(root),
    )


def read_memory(root: Path = ROOT) -> Memory:
    sizes = {
        name: int(size) * 1024
        for name, size in re.findall(r"(\w+):\s+(\d+) kB", _text(root / "proc/meminfo"))
    }
    total = sizes.get("MemTotal", 0)
    limit = _memory_limit(root)
    return Memory(
        total=total,
        available=sizes.get("MemAvailable", 0),
        limit=limit if limit is not None and limit < total else None,
        swap_used=sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0),
    )


def _memory_limit(root: Path) -> int | None:
    texts = [_text(folder / "memory.max") for folder in _groups(root, "")]
    texts += [_text(folder / "memory.limit_in_bytes") for folder in _groups(root, "memory")]
    limits = [int(text) for text in texts if text.strip().isdigit()]
    return min((limit for limit in limits if limit < _NO_LIMIT_BYTES), default=None)


def quota_cores(root: Path = ROOT) -> float | None:
    """Returns the CPU quota of the container in cores, or None without a limit."""
    pairs = [_text(folder / "cpu.max").split() for folder in _groups(root, "")]
    for folder in _groups(root, "cpu"):
        pairs.append(
            [_text(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        )
    quotas = [int(quota) / int(period) for quota, period in filter(_is_quota, pairs)]
    return min(quotas, default=None)


def _is_quota(pair: list[str]) -> bool:
    return len(pair) == 2 and all(text.isdigit() and int(text) > 0 for text in pair)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yields the directories of this process's control group and of its parents.

    Missing directories are included. An empty `controller` means cgroups of version 2, which have
    one tree for all controllers.
    """
    mount = root / "sys/fs/cgroup" / controller
    for path in dict.fromkeys(_own_groups(root, controller)):
        folder = mount / path.lstrip("/")
        yield from [folder, *folder.parents][: len(folder.parts) - len(mount.parts) + 1]


def _own_groups(root: Path, controller: str) -> Iterable[str]:
    lines = [line.split(":", 2) for line in _text(root / "proc/self/cgroup").splitlines()]
    own = [line[2] for line in lines if len(line) == 3 and controller in line[1].split(",")]
    return [path for path in own if ".." not in Path(path).parts] or ["/"]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
