"""Makes containers for tests; tests are skipped, with the reason, where no sandbox can be made."""

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.code_interpreter.records import (
    SandboxLimits,
    SandboxPlan,
    SandboxUnavailable,
)
from ouzel.hosted_tools.code_interpreter.self_check import check_sandbox

MIB = 2**20
TOOL_VARIABLE = "OUZEL_TEST_SANDBOX"  # an environment variable, so that servers of tests have it
Tool = Literal["bubblewrap", "gvisor"]
LIMITS = SandboxLimits(
    memory_bytes=256 * MIB,
    file_bytes=16 * MIB,
    max_processes=48,
    cpu_s=600.0,
    call_timeout_s=600.0,
    output_bytes=20_000,
    max_inodes=5_000,
)


def make_plan(limits: SandboxLimits = LIMITS, root: Path | None = None) -> SandboxPlan:
    # The Python of the tests may lie where the user of the sandbox cannot read it.
    return SandboxPlan(root, "", (), limits, cgroup=None, tool=get_tool())


def get_tool() -> Tool:
    """Returns the tool of the sandboxes that this test makes; a test sets it by the variable."""
    return "gvisor" if os.environ.get(TOOL_VARIABLE) == "gvisor" else "bubblewrap"


@cache
def find_obstacle(tool: Tool) -> str | None:
    """Returns the reason why this machine makes no sandboxes; None if it makes them."""
    try:
        asyncio.run(check_sandbox(replace(make_plan(), tool=tool)))
    except SandboxUnavailable as error:
        return str(error)
    return None


def find_obstacle_in_thread(tool: Tool) -> str | None:
    """Returns the same to a thread that may have a running event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(find_obstacle, tool).result()


def skip_without_sandbox() -> None:
    """Skips the test, with the reason, where no sandbox can be made."""
    obstacle = find_obstacle_in_thread(get_tool())
    if obstacle is not None:
        pytest.skip(f"no sandbox of {get_tool()}: {obstacle}")


@asynccontextmanager
async def opened_containers(
    plan: SandboxPlan | None = None, *, max_containers: int = 4, idle_s: float = 3600.0
) -> AsyncIterator[Containers]:
    containers = Containers(plan or make_plan(), max_containers=max_containers, idle_s=idle_s)
    try:
        yield containers
    finally:
        await containers.close()


@asynccontextmanager
async def opened_container(limits: SandboxLimits = LIMITS) -> AsyncIterator[Container]:
    async with opened_containers(make_plan(limits)) as containers:
        yield await containers.create(None)


async def read_logs(container: Container, code: str) -> str:
    """Runs code that must succeed; returns its output."""
    result = await container.run_python(code)
    assert result.error is None, result
    return result.logs.strip()


async def read_shell(container: Container, command: str) -> str:
    """Runs a command; returns both of its outputs."""
    result = await container.run_command(command)
    return (result.stdout + result.stderr).strip()


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
