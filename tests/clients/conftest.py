"""Starts the server that all clients use, and finds their packages."""

from collections.abc import Iterator

import pytest

from tests.clients.clients import Clients
from tests.clients.long_model import TEMPLATE, make_long_model
from tests.serve.running import RunningServer, serving

FIGURES = "answers of the server"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Serves the demo model under the documented name, with room for long prompts of agents."""
    model = make_long_model(tmp_path_factory.mktemp("model"))
    options = (
        "--served-model-name",
        "ouzel",
        "--chat-template",
        str(TEMPLATE),
        "--kv-cache-gib",
        "0.3",
    )
    with serving(str(model), *options, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


@pytest.fixture
def clients(
    request: pytest.FixtureRequest, server: RunningServer, tmp_path_factory: pytest.TempPathFactory
) -> Clients:
    def report(line: str) -> None:
        request.node.user_properties.append((FIGURES, line))

    return Clients(server, home=tmp_path_factory.mktemp("home"), report=report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the number of answers that each client got."""
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    for report in reports:
        for name, line in report.user_properties:
            if name == FIGURES:
                terminalreporter.write_line(str(line))
