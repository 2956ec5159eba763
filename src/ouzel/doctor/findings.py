"""Lists problems that cost speed or prevent serving, each with advice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ouzel.doctor.software import Disk
from ouzel.machine.machine import Memory, Processor

if TYPE_CHECKING:
    from ouzel.doctor.speed import Speeds

GIB = 2**30
MIN_MEMORY_BYTES = GIB  # the least memory in which the demo model surely starts
LOW_DISK_BYTES = 5 * 10**9
CLEARLY_FASTER = 1.25


@dataclass(frozen=True, slots=True)
class Finding:
    text: str
    advice: str
    stops_serving: bool = False


def findings(
    processor: Processor,
    memory: Memory,
    available_bytes: int,
    disks: Sequence[Disk],
    speeds: "Speeds | None",
    *,
    address: str,
    is_port_free: bool,
    own_server: str,
) -> list[Finding]:
    """Lists the problems that cost speed or prevent serving, each with advice.

    `speeds` is None if they were not measured. `own_server` describes the Ouzel server that uses
    the address; it is empty if no Ouzel server uses it.
    """
    return [
        *_of_processor(processor),
        *_of_memory(memory, available_bytes),
        *_of_disks(disks),
        *([] if speeds is None else _of_speeds(speeds)),
        *([] if is_port_free else [_of_port(address, own_server)]),
    ]


def _of_processor(processor: Processor) -> Iterator[Finding]:
    is_x86 = "AVX2" in processor.features or not any(
        name in processor.features for name in ("dot product", "int8 matrices", "bf16")
    )
    if is_x86 and "AVX2" not in processor.features:
        yield Finding(
            "The processor has no AVX2: matrices are several times slower.", "Use another machine."
        )
    elif not processor.multiplies_int8:
        yield Finding(
            "The processor has no int8 dot products (VNNI): prompts are computed slowly.",
            "Use small models and short prompts; --weights int4 still speeds up answers, since "
            "fewer bytes are read.",
        )
    if processor.quota_cores is not None and processor.quota_cores < processor.num_usable_cores:
        yield Finding(
            f"The CPU quota of this container is {processor.quota_cores:g} cores, but it has "
            f"{processor.num_usable_cores}: a model gets {max(1, int(processor.quota_cores))} "
            f"threads.",
            "Raise the quota, or limit the container to as many whole cores.",
        )
    elif processor.num_usable_cores < processor.num_cores:
        yield Finding(
            f"This process may run on {processor.num_usable_cores} of {processor.num_cores} cores.",
            "Widen its CPU set (taskset, cpuset of the container) if others are free.",
        )
    if processor.num_numa_nodes > 1:
        yield Finding(
            f"The machine has {processor.num_numa_nodes} NUMA nodes: memory of another node is "
            f"slower.",
            "Run one server per node: numactl --cpunodebind=0 --membind=0 ouzel serve ...",
        )


def _of_memory(memory: Memory, available_bytes: int) -> Iterator[Finding]:
    if available_bytes < MIN_MEMORY_BYTES:
        yield Finding(
            f"Only {available_bytes / GIB:.2f} GiB of memory are free.",
            "Stop other programs, or raise the container's limit.",
            stops_serving=True,
        )
    if memory.limit is not None:
        yield Finding(
            f"This container may use {memory.limit / GIB:.3g} of {memory.total / GIB:.3g} GiB of "
            f"memory.",
            "Raise its limit (docker run --memory, resources.limits.memory) for larger models.",
        )
    if memory.swap_used > GIB:
        yield Finding(
            f"{memory.swap_used / GIB:.3g} GiB of memory are swapped out: a swapped model is very "
            f"slow.",
            "Serve a smaller model or width, or stop other programs.",
        )


def _of_disks(disks: Sequence[Disk]) -> Iterator[Finding]:
    for disk in disks:
        if not disk.is_writable:
            yield Finding(
                f"{disk.path}, {disk.what}, cannot be written: every start has to make its files "
                f"again.",
                "Change its owner, or choose another directory with --cache-dir or HF_HOME.",
            )
        elif disk.free_bytes < LOW_DISK_BYTES:
            yield Finding(
                f"The disk of {disk.path}, {disk.what}, has only {disk.free_bytes / 1e9:.2g} GB "
                f"free.",
                "Free some with `ouzel rm`; `ouzel list` shows the sizes of models.",
            )


def _of_speeds(speeds: "Speeds") -> Iterator[Finding]:
    auto, fastest = speeds.auto, speeds.fastest
    if fastest.gflops > CLEARLY_FASTER * auto.gflops:
        yield Finding(
            f"Matrices of prompts are multiplied {fastest.gflops / auto.gflops:.1f} times as fast "
            f"in {fastest.precision} as in {auto.precision}, the choice of --precision auto.",
            f"Try --precision {fastest.precision}, and compare answers: roundings differ.",
        )


def _of_port(address: str, own_server: str) -> Finding:
    if own_server:
        advice = "Use that server, or serve on another port: --port 8001."
        return Finding(f"{own_server} is served at {address}.", advice)
    return Finding(f"{address} is used by another program.", "Serve on another port: --port 8001.")
