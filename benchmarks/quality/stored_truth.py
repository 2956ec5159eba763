"""Loads the stored truths of the real models, and makes them."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from benchmarks.quality.packages import EMBEDDER, NotFetched, RealModel
from benchmarks.quality.texts import SENTENCES, make_windows
from benchmarks.quality.truth import Floats, Truth, load_truth
from ouzel.model_store.model_directory import locate_model

ROOT = Path(__file__).parents[2]
DIRECTORY = ROOT / "tests" / "backends" / "real"


def load_stored(model: RealModel) -> Truth:
    """Returns a model's stored truth. Raises NotFetched, with the command that makes it."""
    path = DIRECTORY / f"{model.name}.npz"
    if not path.is_file():
        command = f"uv run python -m benchmarks.quality {model.name} --make-truth PYTHON"
        raise NotFetched(
            f"{path} is missing; make it, with an interpreter that has torch: {command}"
        )
    return load_truth(path)


def load_stored_vectors() -> Floats:
    vectors: Floats = np.load(DIRECTORY / f"{EMBEDDER.name}.npy")
    return vectors


def make_stored(model: RealModel, path: Path, python: Path, cache_dir: Path) -> Path:
    """Runs transformers in another interpreter, which has torch, transformers, gguf and accelerate.

    Returns the file of the truth. Raises CalledProcessError.
    """
    if model is EMBEDDER:
        out = DIRECTORY / f"{model.name}.npy"
        order = {"model": str(path), "texts": SENTENCES, "out": str(out)}
        return _run("benchmarks.quality.transformers_vectors", order, python, out)
    out = DIRECTORY / f"{model.name}.npz"
    tokenizer = Tokenizer.from_file(
        str(locate_model(str(path), str(cache_dir)).directory / "tokenizer.json")
    )
    order = {"model": str(path), "windows": make_windows(tokenizer).tolist(), "out": str(out)}
    return _run("benchmarks.quality.transformers_truth", order, python, out)


def _run(module: str, order: Mapping[str, object], python: Path, out: Path) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "order.json"
        file.write_text(json.dumps(order))
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        }
        subprocess.run([str(python), "-m", module, str(file)], check=True, env=environment)
    return out
