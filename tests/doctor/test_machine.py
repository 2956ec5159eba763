"""Linux's files describe the machine."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ouzel.machine.machine import read_memory, read_processor

CPU = (
    "processor : {number}\nmodel name : Big Iron 9000\n"
    "flags : fpu avx2 avx512f avx512_vnni amx_int8 amx_bf16\n"
)
MEMORY = (
    "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapTotal: 4194304 kB\nSwapFree: 1048576 kB\n"
)
GIB = 2**30


def machine(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_processor_is_read_with_what_matters(tmp_path: Path) -> None:
    siblings = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    files = {"proc/cpuinfo": "\n".join(CPU.format(number=number) for number in range(4))}
    files |= {siblings.format(number): f"{number % 2},{number % 2 + 2}" for number in range(4)}
    files |= {f"sys/devices/system/node/node{number}/cpulist": "" for number in range(2)}
    processor = read_processor(machine(tmp_path, files))
    assert (processor.name, processor.num_cores, processor.num_physical_cores) == (
        "Big Iron 9000",
        4,
        2,
    )
    assert processor.num_numa_nodes == 2
    assert processor.features == ("AVX2", "AVX-512", "AVX-512 VNNI", "AMX int8", "AMX bf16")
    assert processor.multiplies_int8
    assert processor.quota_cores is None


def test_a_processor_of_arm_is_read(tmp_path: Path) -> None:
    processor = read_processor(
        machine(tmp_path, {"proc/cpuinfo": "processor : 0\nFeatures : fp asimddp i8mm bf16\n"})
    )
    assert processor.features == ("dot product", "int8 matrices", "bf16")


def test_memory_is_read_with_what_is_swapped_out(tmp_path: Path) -> None:
    memory = read_memory(machine(tmp_path, {"proc/meminfo": MEMORY}))
    assert (memory.total, memory.available, memory.limit) == (16 * GIB, 8 * GIB, None)
    assert memory.swap_used == 3 * GIB


CONTAINERS = {
    "second version": {
        "sys/fs/cgroup/memory.max": str(4 * GIB),
        "sys/fs/cgroup/cpu.max": "150000 100000",
    },
    "second version, a group around": {
        "proc/self/cgroup": "0::/outer/inner\n",
        "sys/fs/cgroup/outer/memory.max": str(4 * GIB),
        "sys/fs/cgroup/outer/inner/memory.max": "max",
        "sys/fs/cgroup/outer/cpu.max": "150000 100000",
        "sys/fs/cgroup/outer/inner/cpu.max": "max 100000",
    },
    "first version": {
        "proc/self/cgroup": "4:memory:/docker/one\n1:cpu,cpuacct:/docker/one\n",
        "sys/fs/cgroup/memory/docker/one/memory.limit_in_bytes": str(4 * GIB),
        "sys/fs/cgroup/cpu/docker/one/cpu.cfs_quota_us": "150000",
        "sys/fs/cgroup/cpu/docker/one/cpu.cfs_period_us": "100000",
    },
    "first version, seen from within": {
        "proc/self/cgroup": "4:memory:/docker/one\n1:cpu:/docker/one\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str(4 * GIB),
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    },
}


@pytest.mark.parametrize("files", CONTAINERS.values(), ids=CONTAINERS)
def test_the_limits_of_a_container_are_found(files: dict[str, str], tmp_path: Path) -> None:
    root = machine(tmp_path, {"proc/meminfo": MEMORY, **files})
    assert read_memory(root).limit == 4 * GIB
    assert read_processor(root).quota_cores == 1.5


def test_limits_that_are_none_are_none(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": MEMORY,
        "sys/fs/cgroup/memory.max": "max",
        "sys/fs/cgroup/cpu.max": "max 100000",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    }
    root = machine(tmp_path, files)
    assert read_memory(root).limit is None
    assert read_processor(root).quota_cores is None


def test_a_system_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    processor, memory = read_processor(tmp_path), read_memory(tmp_path)
    assert (processor.name, processor.features, processor.num_numa_nodes) == ("unknown", (), 1)
    assert processor.num_cores >= 1
    assert memory.total == 0
