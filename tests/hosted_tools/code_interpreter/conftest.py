"""Gives the tests of this folder containers."""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ouzel.hosted_tools.code_interpreter.container import Container
from tests.hosted_tools.code_interpreter.sandboxes import find_obstacle, opened_container


@pytest.fixture(scope="session")
def sandbox() -> Iterator[None]:
    """Skips the test, with the reason, where no sandbox can be made."""
    with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
        obstacle = thread.submit(find_obstacle).result()
    if obstacle is not None:
        pytest.skip(f"no sandbox: {obstacle}")
    yield


@pytest.fixture
async def container(sandbox: None) -> AsyncIterator[Container]:
    async with opened_container() as container:
        yield container
