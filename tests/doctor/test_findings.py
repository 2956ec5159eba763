"""Causes of a lower speed are found, each with a remedy; nothing else is mentioned."""

from dataclasses import replace
from pathlib import Path

import pytest

from ouzel.doctor.findings import Finding, findings
from ouzel.doctor.software import Disk
from ouzel.doctor.speed import Speed, Speeds
from ouzel.machine.machine import Memory, Processor

GIB = 2**30
PROCESSOR = Processor(
    name="Big Iron",
    num_cores=8,
    num_usable_cores=8,
    num_physical_cores=8,
    num_numa_nodes=1,
    features=("AVX2", "AVX-512 VNNI"),
    quota_cores=None,
)
MEMORY = Memory(total=32 * GIB, available=16 * GIB, limit=None, swap_used=0)
DISK = Disk("the cache of weights", Path("/cache"), 10**12, is_writable=True)
SPEEDS = Speeds(30.0, (Speed("bf16", 500.0, is_auto=True), Speed("int8", 510.0, is_auto=False)))


def found(
    processor: Processor = PROCESSOR,
    memory: Memory = MEMORY,
    available: int = 16 * GIB,
    disk: Disk = DISK,
    speeds: Speeds | None = SPEEDS,
    *,
    is_port_free: bool = True,
    own_server: str = "",
) -> list[Finding]:
    return findings(
        processor,
        memory,
        available,
        [disk],
        speeds,
        address="127.0.0.1 port 8000",
        is_port_free=is_port_free,
        own_server=own_server,
    )


def test_of_a_machine_that_is_well_nothing_is_said() -> None:
    assert found() == []
    assert found(speeds=None) == []
    assert found(processor=replace(PROCESSOR, features=("dot product",))) == []


CASES = {
    "has no AVX2": found(processor=replace(PROCESSOR, features=())),
    "no int8 dot products": found(processor=replace(PROCESSOR, features=("AVX2",))),
    "a model gets 2 threads": found(processor=replace(PROCESSOR, quota_cores=2.5)),
    "may run on 2 of 8 cores": found(processor=replace(PROCESSOR, num_usable_cores=2)),
    "numactl --cpunodebind=0": found(processor=replace(PROCESSOR, num_numa_nodes=2)),
    "may use 4 of 32 GiB": found(memory=replace(MEMORY, limit=4 * GIB)),
    "2 GiB of memory are swapped out": found(memory=replace(MEMORY, swap_used=2 * GIB)),
    "has only 1 GB free": found(disk=replace(DISK, free_bytes=10**9)),
    "cannot be written": found(disk=replace(DISK, is_writable=False)),
    "Try --precision int8": found(
        speeds=replace(SPEEDS, matrices=(SPEEDS.matrices[0], Speed("int8", 999.0, False)))
    ),
    "is used by another program. Serve on another port: --port 8001": found(is_port_free=False),
    "Ouzel 1.0 with m is served at": found(is_port_free=False, own_server="Ouzel 1.0 with m"),
}


@pytest.mark.parametrize(("text", "of_case"), CASES.items(), ids=CASES)
def test_what_costs_speed_is_found(text: str, of_case: list[Finding]) -> None:
    [finding] = of_case
    assert text in f"{finding.text} {finding.advice}"
    assert finding.text.endswith(".")
    assert finding.advice.endswith((".", "..."))
    assert not finding.stops_serving


def test_without_memory_nothing_is_served() -> None:
    [finding] = found(available=GIB // 2)
    assert finding.stops_serving
    assert "Only 0.50 GiB of memory are free" in finding.text
