from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.launching import Machine, ModelServer, model_server


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server
