"""The server that all clients speak to, and where each finds its packages."""

from collections.abc import Iterator

import pytest

from tests.cli.running import RunningServer, serving
from tests.clients.clients import Clients
from tests.clients.long_model import TEMPLATE, make_long_model


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Serves the demo model, with room for the prompts of coding agents, under the name that the documents use."""
    model = make_long_model(tmp_path_factory.mktemp("model"))
    options = ("--served-model-name", "ouzel", "--chat-template", str(TEMPLATE), "--kv-cache-gib", "0.3")
    with serving(str(model), *options, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture
def clients(server: RunningServer, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    return Clients(server, home=tmp_path_factory.mktemp("home"))
