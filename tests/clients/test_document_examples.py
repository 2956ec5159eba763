"""The examples of docs/connect/ for packages run as they are printed."""

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer

pytestmark = pytest.mark.release("the examples of docs/connect/")


@pytest.mark.parametrize("page", ["agent-framework", "anthropic", "ollama", "pydantic-ai"])
def test_a_python_example_prints_an_answer(
    clients: Clients, server: RunningServer, page: str
) -> None:
    example = clients.block(page, "python")

    assert clients.run(packages("python") / "bin" / "python", "-c", example).stdout.strip()


def test_the_example_of_vercels_package_prints_an_answer(
    clients: Clients, server: RunningServer
) -> None:
    (clients.home / "node_modules").symlink_to(packages("javascript") / "node_modules")
    (clients.home / "hello.mjs").write_text(clients.block("vercel", "js"))

    assert clients.run("node", "hello.mjs").stdout.strip()
