"""Ollama's package for Python pulls and deletes a model of a stand-in for the hub."""

from pathlib import Path

from ouzel.demo import MODEL_DIRECTORY
from tests.cli.test_pull import environment
from tests.clients.clients import Clients, packages
from tests.model_store.hub import serving_hub
from tests.serve.running import serving

SCRIPT = Path(__file__).parent / "scripts" / "ollama_pulls.py"


def test_ollamas_package_pulls_and_deletes(tmp_path: Path) -> None:
    python = packages("python") / "bin" / "python"
    with (
        serving_hub(MODEL_DIRECTORY) as hub,
        serving(
            "--admin-api-key",
            "sk-admin",
            "--no-store",
            cache_dir=tmp_path / "cache",
            environment=environment(tmp_path, hub.url),
        ) as server,
    ):
        clients = Clients(server, tmp_path, print)
        clients.run(python, SCRIPT, server.root, "owner/model", "sk-admin")
