from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.api.speech.listening import ListeningServer, listening_server


@pytest.fixture(scope="package")
def listening() -> Iterator[ListeningServer]:
    with listening_server() as listening:
        yield listening


@pytest.fixture(scope="package")
def http(listening: ListeningServer) -> Iterator[httpx.Client]:
    with listening.server.client() as http:
        yield http


@pytest.fixture(scope="package")
def client(listening: ListeningServer) -> Iterator[openai.OpenAI]:
    url = f"{listening.url}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=None) as client:
        yield client
