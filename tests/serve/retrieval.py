"""Starts the server of docs/how-to/retrieval.md with small models, and runs the page's programs."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from ouzel.demo import MODEL_DIRECTORY
from tests.documents.markdown import ROOT, Block, read_blocks
from tests.serve.running import RunningServer, serving
from tests.small_encoders import write_embedder, write_reranker

OPTIONS = ROOT / "deploy" / "compose" / "retrieval" / "models.yaml"
BLOCKS = read_blocks(ROOT / "docs" / "how-to" / "retrieval.md")
MODELS = ("chat", "embeddings", "reranker")
TEXTS = {
    "dippers.txt": (
        "Dippers live at fast streams. They dive and walk on the bottom.",
        "A dipper builds its nest of moss, often behind a waterfall.",
        "Dippers eat larvae of insects, which they find under stones.",
    ),
    "kingfishers.txt": (
        "Kingfishers wait on a branch above slow water.",
        "Kingfishers dig a tunnel into the bank of a river for their eggs.",
    ),
    "bread.txt": ("Bread needs flour, water, salt and yeast. Its dough rises for two hours.",),
}
QUESTION = "Where do dippers nest?"


@dataclass(frozen=True)
class Retrieval:
    server: RunningServer
    directory: Path  # has the directory `documents`

    def count_answers(self) -> dict[str, int]:
        """Returns the number of finished requests by model."""
        lines = httpx.get(f"{self.server.root}/metrics", timeout=None).text.splitlines()
        counts = dict.fromkeys(MODELS, 0)
        for line in lines:
            for model in MODELS:
                if line.startswith("ouzel_request_success") and f'model_name="{model}"' in line:
                    counts[model] += int(line.rpartition(" ")[2])
        return counts

    def rank_files(self) -> list[str]:
        """Returns the files of the three texts that the reranker finds the best."""
        files = [name for name, texts in TEXTS.items() for _ in texts]
        body = {
            "model": "reranker",
            "query": QUESTION,
            "documents": [text for texts in TEXTS.values() for text in texts],
            "top_n": 3,
        }
        answer = httpx.post(f"{self.server.url}/rerank", json=body, timeout=None).json()
        return [files[result["index"]] for result in answer["results"]]

    def run(self, python: str | Path, program: str, environment: Mapping[str, str]) -> list[str]:
        """Runs a program of the page against this server, and returns its lines."""
        ran = subprocess.run(
            [python, "-c", program.replace("http://127.0.0.1:8000", self.server.root)],
            cwd=self.directory,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()


def find_program(containing: str, blocks: Sequence[Block] = BLOCKS) -> str:
    """Returns the Python program among the blocks of a page that contains a text."""
    [block] = [each for each in blocks if each.language == "python" and containing in each.text]
    return block.text


def list_models(directory: Path) -> list[dict[str, object]]:
    """Returns the entries of the options file with small models, which it writes, in float32."""
    text = " ".join([QUESTION, *(text for texts in TEXTS.values() for text in texts)])
    write_embedder(directory / "embedder", text)
    write_reranker(directory / "reranker", text)
    paths = (MODEL_DIRECTORY, directory / "embedder", directory / "reranker")
    entries = yaml.safe_load(OPTIONS.read_text())["models"]
    assert tuple(entry["name"] for entry in entries) == MODELS
    exact = {"weights": "f32", "precision": "f32"}
    small = {"kv_cache_gib": 0.05, "kv_cache_dtype": "f32"}
    return [
        {**entry, "model": str(path), **exact, **(small if "kv_cache_gib" in entry else {})}
        for entry, path in zip(entries, paths, strict=True)
    ]


@contextmanager
def serving_retrieval(directory: Path, *options: str) -> Iterator[Retrieval]:
    """Starts the server; the directory gets the documents, the models and the options file."""
    (directory / "documents").mkdir()
    for name, texts in TEXTS.items():
        (directory / "documents" / name).write_text("\n\n".join(texts))
    file = directory / "models.yaml"
    file.write_text(yaml.safe_dump({"models": list_models(directory)}))
    with serving(
        "--config", str(file), "--no-store", *options, cache_dir=directory / "cache"
    ) as server:
        yield Retrieval(server, directory)
