from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.api.speaking.humming import HummingServer, humming_server


@pytest.fixture(scope="package")
def humming() -> Iterator[HummingServer]:
    with humming_server() as humming:
        yield humming


@pytest.fixture(scope="package")
def http(humming: HummingServer) -> Iterator[httpx.Client]:
    with humming.server.client() as http:
        yield http


@pytest.fixture(scope="package")
def client(humming: HummingServer) -> Iterator[openai.OpenAI]:
    url = f"{humming.url}/v1"
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=None) as client:
        yield client
