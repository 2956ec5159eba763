"""Processors are shared out by cores and memory nodes, as Linux's files name them."""

import os
from pathlib import Path

import pytest

from ouzel.machine.processors import divide_cores, divide_processors, divide_quota, group_by_cores


def written_system(directory: Path, *, nodes: dict[int, str], cores: dict[int, int]) -> Path:
    """Writes Linux's files: the core of each processor, the processors of each memory node."""
    for processor, core in cores.items():
        topology = directory / f"cpu/cpu{processor}/topology"
        topology.mkdir(parents=True)
        (topology / "core_id").write_text(f"{core}\n")
        (topology / "physical_package_id").write_text("0\n")
    for node, processors in nodes.items():
        (directory / f"node/node{node}").mkdir(parents=True)
        (directory / f"node/node{node}/cpulist").write_text(f"{processors}\n")
    return directory


def test_sibling_threads_and_nodes_stay_together(tmp_path: Path) -> None:
    siblings = {processor: processor % 4 for processor in range(8)}
    system = written_system(tmp_path, nodes={0: "0,2,4,6", 1: "1,3,5,7"}, cores=siblings)

    cores = group_by_cores(range(8), system)

    assert cores == [[0, 4], [2, 6], [1, 5], [3, 7]]
    assert divide_cores(cores, 2) == [(0, 4, 2, 6), (1, 5, 3, 7)]


def test_processors_that_the_process_may_not_use_are_left_out(tmp_path: Path) -> None:
    system = written_system(tmp_path, nodes={0: "0-3"}, cores={0: 0, 1: 1, 2: 0, 3: 1})

    assert group_by_cores([1, 2], system) == [[2], [1]]


@pytest.mark.parametrize(
    ("num_cores", "num_shares", "sizes"),
    [(8, 3, [2, 3, 3]), (2, 2, [1, 1]), (5, 5, [1] * 5), (1, 1, [1])],
)
def test_shares_differ_by_a_core_at_most(num_cores: int, num_shares: int, sizes: list[int]) -> None:
    shares = divide_cores([[core] for core in range(num_cores)], num_shares)

    assert [len(share) for share in shares] == sizes
    assert sorted(processor for share in shares for processor in share) == list(range(num_cores))


@pytest.mark.parametrize(
    ("quota", "num_shares", "threads"),
    [
        (4, 1, [4]),
        (4, 2, [2, 2]),
        (3.5, 2, [1, 2]),
        (0.5, 1, [1]),
        (2, 3, [1, 1, 1]),
        (64, 2, [0, 0]),
        (None, 1, [0]),
    ],
)
def test_threads_are_as_many_as_a_quota_has_time_for(
    quota: float | None, num_shares: int, threads: list[int]
) -> None:
    assert divide_quota(num_shares, quota, 64) == threads


def test_with_fewer_cores_than_shares_siblings_part() -> None:
    assert divide_cores([[0, 1]], 2) == [(0,), (1,)]


def test_a_machine_that_says_nothing_has_a_core_for_each_processor(tmp_path: Path) -> None:
    assert group_by_cores([0, 1, 2], tmp_path) == [[0], [1], [2]]


def test_this_machine_is_shared_out_whole() -> None:
    [everything] = divide_processors(1)

    assert sorted(everything) == sorted(os.sched_getaffinity(0))
