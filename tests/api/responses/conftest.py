from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer


@pytest.fixture(scope="session")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Yields a server whose model repeats the user's message, reasoning and calls included."""
    with thinking_server(
        f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    ) as server:
        yield server


@pytest.fixture(scope="session")
def thinker_http(thinker: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=thinker.url, timeout=None) as client:
        yield client


@pytest.fixture(scope="session")
def thinker_client(thinker: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{thinker.url}/v1", api_key="none", max_retries=0) as client:
        yield client
