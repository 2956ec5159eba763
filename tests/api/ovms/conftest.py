from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import running_server


@pytest.fixture(scope="package", params=["openai", "ovms"])
def any_profile(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Yields a client of a server of each profile, with the model names of OVMS's documents."""
    config = ServerConfig(profile=request.param)
    names = (MODEL, ALIAS, "llama3", "llava")
    with running_server(config=config, names=names) as server, server.client() as http:
        yield http


@pytest.fixture(scope="package")
def ovms() -> Iterator[httpx.Client]:
    with running_server(config=ServerConfig(profile="ovms")) as server, server.client() as http:
        yield http


@pytest.fixture(scope="package")
def random_ovms() -> Iterator[httpx.Client]:
    """Yields a client of a real engine on random logits, whose samples differ."""
    with (
        running_server(
            config=ServerConfig(profile="ovms"), engine_factory="create_random_engine"
        ) as server,
        server.client() as http,
    ):
        yield http
