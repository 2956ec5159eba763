from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.serving import RunningServer, running_server


@pytest.fixture(scope="package")
def lmi_server() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(profile="lmi")) as server:
        yield server


@pytest.fixture(scope="package")
def lmi(lmi_server: RunningServer) -> Iterator[httpx.Client]:
    with lmi_server.client() as client:
        yield client


@pytest.fixture(scope="package")
def tgi_server() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(profile="lmi", lmi_tgi_compat=True)) as server:
        yield server


@pytest.fixture(scope="package")
def tgi(tgi_server: RunningServer) -> Iterator[httpx.Client]:
    with tgi_server.client() as client:
        yield client
