"""PyPI packages written for other servers than OpenAI's work with Ouzel too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer, serving

SCRIPTS = Path(__file__).parent / "scripts" / "dialects"
CHROMADB = Path(__file__).parent / "scripts" / "chromadb" / "chromadb_embeddings.py"
EMBEDDER = Path(__file__).parents[1] / "backends" / "golden_sentences" / "qwen3-embedding"


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    options = ("--served-model-name", "ouzel")
    with serving(str(EMBEDDER), *options, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def run(clients: Clients, server: RunningServer, name: str) -> None:
    clients.run(packages("dialects") / "bin" / "python", SCRIPTS / f"{name}.py", server.root)


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*_embeddings.py")))
def test_a_package_gets_its_embeddings(
    clients: Clients, embedder: RunningServer, name: str
) -> None:
    run(clients, embedder, name)


def test_boto3_invokes_an_endpoint(clients: Clients, server: RunningServer) -> None:
    run(clients, server, "sagemaker")


@pytest.mark.release("chromadb, which takes long to install")
def test_chromadb_finds_documents_by_their_vectors(
    clients: Clients, embedder: RunningServer
) -> None:
    clients.run(packages("chromadb") / "bin" / "python", CHROMADB, embedder.root)
