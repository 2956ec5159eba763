"""Runs the scripts of npm packages, each with the set of packages of its name."""

import shutil
from pathlib import Path

import pytest

from tests.clients.clients import NODE_20, NODE_22, Clients, node_directory, packages
from tests.serve.running import RunningServer

SCRIPTS = Path(__file__).parent / "scripts"


def run(
    clients: Clients, server: RunningServer, program: str | Path, script: str, packages_name: str
) -> None:
    modules = packages(packages_name) / "node_modules"
    # Node looks for a module's imports beside the module
    (clients.home / "node_modules").symlink_to(modules)
    copy = shutil.copy(SCRIPTS / f"{script}.mjs", clients.home)

    clients.run(program, copy, environment={"ROOT": server.root})


each_script = pytest.mark.parametrize(
    ("script", "packages_name"),
    [
        pytest.param("javascript", "javascript", id="openai's package and Vercel's providers"),
        pytest.param(
            "anthropic_javascript",
            "anthropic-javascript",
            id="Anthropic's package and Vercel's for Node 20",
        ),
    ],
)


@each_script
def test_a_package_gets_valid_answers(
    clients: Clients, server: RunningServer, script: str, packages_name: str
) -> None:
    run(clients, server, "node", script, packages_name)


@pytest.mark.release("npm packages under each version of Node")
@pytest.mark.parametrize("version", [NODE_20, NODE_22])
@each_script
def test_a_package_gets_valid_answers_under_each_version_of_node(
    clients: Clients, server: RunningServer, version: str, script: str, packages_name: str
) -> None:
    run(clients, server, node_directory(version) / "node", script, packages_name)
