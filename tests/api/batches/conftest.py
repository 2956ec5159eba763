from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def batch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    path: Path = tmp_path_factory.mktemp("store") / "store.sqlite3"
    with running_server(store_url=f"sqlite:///{path}") as server:
        yield server


@pytest.fixture(scope="module")
def batch_http(batch_server: RunningServer) -> Iterator[httpx.Client]:
    with batch_server.client() as client:
        yield client
