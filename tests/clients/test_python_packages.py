"""Runs the scripts of PyPI packages, each in a process of its own."""

from pathlib import Path

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer

SCRIPTS = Path(__file__).parent / "scripts"
TOOLS_OF_ANTHROPIC = "anthropic_tools"
LM_EVAL = "lm_eval"
OF_A_RELEASE = (TOOLS_OF_ANTHROPIC, LM_EVAL)
NAMES = sorted(path.stem.removesuffix("_client") for path in SCRIPTS.glob("*_client.py"))


def run(clients: Clients, server: RunningServer, name: str, packages_name: str) -> None:
    clients.run(
        packages(packages_name) / "bin" / "python", SCRIPTS / f"{name}_client.py", server.root
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_A_RELEASE])
def test_a_package_gets_valid_answers(clients: Clients, server: RunningServer, name: str) -> None:
    run(clients, server, name, "python")


@pytest.mark.release(
    "tools of Anthropic's types, whose forced calls the demo model fills with long texts"
)
def test_tools_of_anthropics_own_types_are_called(clients: Clients, server: RunningServer) -> None:
    run(clients, server, TOOLS_OF_ANTHROPIC, "python")


@pytest.mark.release("lm-eval, which takes long to import")
def test_lm_eval_scores_a_task_with_the_servers_tokenizer(
    clients: Clients, server: RunningServer
) -> None:
    run(clients, server, LM_EVAL, "lm-eval")
