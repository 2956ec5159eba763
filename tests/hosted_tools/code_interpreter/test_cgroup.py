"""Cgroups hold a container; tests are skipped, with the reason, where none can be made.

Most containers of Docker have a cgroup file system that is read only, and a machine with cgroups of
version 1 has no controllers left for version 2.
"""

import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from ouzel.hosted_tools.code_interpreter.cgroup import prepare_cgroup, remove_cgroup
from ouzel.hosted_tools.code_interpreter.records import ContainerEnded, SandboxUnavailable
from tests.hosted_tools.code_interpreter.sandboxes import (
    Tool,
    make_plan,
    opened_containers,
    read_logs,
)

LAUNCH = Path("src/ouzel/hosted_tools/code_interpreter/launch.py").resolve()


def find_mount() -> Path:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            return Path(place.split()[4])
    pytest.skip("no cgroups of version 2 are mounted")


@pytest.fixture
def parent() -> Iterator[Path]:
    made = find_mount() / f"test-{secrets.token_hex(4)}"
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made: {error.strerror}")
    yield made
    for left in made.iterdir():
        if left.is_dir():
            remove_cgroup(left)
    made.rmdir()


@pytest.fixture
def able_parent(parent: Path) -> Path:
    """Returns a cgroup that can hold memory and processes."""
    try:
        prepare_cgroup(parent)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    return parent


def test_a_removed_cgroup_ends_its_processes(parent: Path) -> None:
    cgroup = parent / "ouzel-x"
    cgroup.mkdir()
    settings = msgspec.json.encode({"cgroup": str(cgroup), "nice": 0, "uid": None}).decode()
    command = [sys.executable, "-I", "-S", str(LAUNCH), settings, "/bin/sh", "-c"]
    command.append("sleep 1000000 & echo ready; wait")
    shell = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert shell.stdout is not None and shell.stdout.readline() == b"ready\n"
    assert str(shell.pid) in (cgroup / "cgroup.procs").read_text().split()
    assert len((cgroup / "cgroup.procs").read_text().split()) == 2
    remove_cgroup(cgroup)
    assert not cgroup.exists()
    assert shell.stdout.read() == b""  # both processes have ended
    assert shell.wait() == -9
    shell.stdout.close()


def test_a_server_takes_over_what_a_killed_one_has_left(able_parent: Path) -> None:
    (able_parent / "ouzel-left").mkdir()
    prepare_cgroup(able_parent)
    assert not (able_parent / "ouzel-left").exists()


def read_numbers(parent: Path) -> dict[str, int]:
    """Returns numbers of the only cgroup of a container; none if there is no cgroup."""
    names = ("memory.max", "pids.max", "pids.current")
    found = list(parent.glob("ouzel-*"))
    return {name: int((cgroup / name).read_text()) for cgroup in found for name in names}


async def test_the_kernel_holds_memory_and_processes(sandbox: Tool, able_parent: Path) -> None:
    plan = replace(make_plan(), cgroup=able_parent)
    async with opened_containers(plan) as containers:
        container = await containers.create(None)
        await read_logs(container, "1")
        numbers = read_numbers(able_parent)
        assert numbers["memory.max"] <= plan.most_memory_bytes + 2**27
        assert numbers["pids.max"] == plan.most_threads
        assert numbers["pids.current"] >= 3
        many = "import os\nfor _ in range(6): os.fork()\nx = bytearray(10**8)\nx[::4096] = b'1' * "
        with pytest.raises(ContainerEnded):
            await container.run_python(f"{many} len(x[::4096])\nimport time; time.sleep(10**6)")
        await container.has_ended.wait()
        assert read_numbers(able_parent) == {}


def test_a_machine_without_controllers_names_them() -> None:
    mount = find_mount()
    offered = (mount / "cgroup.controllers").read_text().split()
    if {"memory", "pids"} <= set(offered):
        pytest.skip("this machine has the controllers")
    with pytest.raises(SandboxUnavailable, match="lacks the controllers"):
        prepare_cgroup(mount)
