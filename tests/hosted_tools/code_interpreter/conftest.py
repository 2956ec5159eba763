"""Gives the tests of this folder containers."""

from collections.abc import AsyncIterator

import pytest

from ouzel.hosted_tools.code_interpreter.container import Container
from tests.hosted_tools.code_interpreter.sandboxes import (
    TOOL_VARIABLE,
    Tool,
    get_tool,
    opened_container,
    skip_without_sandbox,
)


@pytest.fixture(params=["bubblewrap", "gvisor"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Runs the test with each tool; skips it, with the reason, where one makes no sandbox."""
    monkeypatch.setenv(TOOL_VARIABLE, request.param)
    skip_without_sandbox()
    return get_tool()


@pytest.fixture
async def container(sandbox: Tool) -> AsyncIterator[Container]:
    async with opened_container() as container:
        yield container
