"""Writes a demo model with one layer, whose calibration takes less than a second."""

import json
import shutil
from pathlib import Path

import numpy as np

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.calibration.recording import CalibrationText
from ouzel.config import EngineConfig, ModelConfig
from ouzel.demo import MODEL_DIRECTORY
from ouzel.engine.base import ModelRunner
from tests.backends.quantize import load, save

NUM_MATRICES = 7  # the matrices of a layer


def make_short_demo(directory: Path) -> Path:
    """Writes the demo model with its first layer alone."""
    shutil.copytree(MODEL_DIRECTORY, directory, ignore=shutil.ignore_patterns("*.safetensors"))
    tensors = load(MODEL_DIRECTORY / "model.safetensors")
    first = {
        name: tensor
        for name, tensor in tensors.items()
        if ".layers." not in name or ".layers.0." in name
    }
    save(directory / "model.safetensors", first)
    config = json.loads((directory / "config.json").read_bytes())
    (directory / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
    return directory


def make_text(vocab_size: int = 2000) -> CalibrationText:
    """Draws 256 tokens, the same at each call."""
    return CalibrationText((), np.random.default_rng(0).integers(0, vocab_size, 256).tolist())


def create_exact_runner(directory: Path, cache: Path, weights: str) -> ModelRunner:
    """Loads weights of this width, and computes in float32."""
    model = ModelConfig(model=str(directory), weights=weights, cache_dir=str(cache))
    return create_runner(model, EngineConfig(precision="f32", kv_cache_dtype="f32"), num_blocks=16)
