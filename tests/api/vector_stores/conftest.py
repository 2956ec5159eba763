"""Servers and clients of the tests of vector stores."""

from collections.abc import Iterator

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.serving import RunningServer
from tests.api.vector_stores.setup import TEXTS, connect, fill, search_server
from tests.engine import vector_runner


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    file = tmp_path_factory.mktemp("store") / "store.sqlite3"
    with search_server(file, config=ServerConfig(api_key=("one", "two"))) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with connect(server) as client:
        yield client


@pytest.fixture
def other(server: RunningServer) -> Iterator[openai.OpenAI]:
    """Connects a client with another API key."""
    with connect(server, "two") as client:
        yield client


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    headers = {"authorization": "Bearer one"}
    with httpx.Client(base_url=server.url, timeout=None, headers=headers) as client:
        yield client


@pytest.fixture
def no_vectors() -> Iterator[None]:
    """Lets the model for vectors wait until the test ends, so that files stay in progress."""
    vector_runner.may_run.clear()
    yield
    vector_runner.may_run.set()


@pytest.fixture(scope="module")
def notes(server: RunningServer) -> str:
    with connect(server) as client:
        return fill(client, TEXTS)
