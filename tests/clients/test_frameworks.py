"""Runs each script of the agent frameworks with the set of packages of its directory's name."""

from pathlib import Path

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer

pytestmark = pytest.mark.release("frameworks of agents, which take long to install and to import")
SCRIPTS = Path(__file__).parent / "scripts"
SETS = ("agents", "browser-use", "crewai", "frameworks", "google-adk", "gradio", "openai-agents")
PATHS = sorted(path for name in SETS for path in (SCRIPTS / name).glob("*_client.py"))
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


@pytest.mark.parametrize("script", PATHS, ids=lambda path: path.stem.removesuffix("_client"))
def test_a_framework_gets_valid_answers(
    clients: Clients, server: RunningServer, script: Path
) -> None:
    python = packages(script.parent.name) / "bin" / "python"

    with clients.accepted(script.stem.removesuffix("_client")):
        clients.run(python, script, server.root, environment=OFFLINE)
