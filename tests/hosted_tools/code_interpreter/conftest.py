"""Gives the tests of this folder containers."""

from collections.abc import AsyncIterator

import pytest

from ouzel.hosted_tools.code_interpreter.container import Container
from tests.hosted_tools.code_interpreter.sandboxes import opened_container, skip_without_sandbox


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skips the test, with the reason, where no sandbox can be made."""
    skip_without_sandbox()


@pytest.fixture
async def container(sandbox: None) -> AsyncIterator[Container]:
    async with opened_container() as container:
        yield container
