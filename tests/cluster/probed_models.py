"""`python -m tests.cluster.probed_models DIRECTORY` writes the models that probed servers need.

These are the demo model, an adapter for it, and the demo model again as a model of vectors. Serve
them with `ouzel serve --config DIRECTORY/models.yaml`.
"""

import sys
from pathlib import Path

import numpy as np
import yaml

from ouzel.demo import MODEL_DIRECTORY
from tests.backends.adapters import RandomAdapter

MODEL, ADAPTER, VECTORS = "ouzel-demo", "poet", "vectors"
NUM_LAYERS, WIDTH, RANK = 5, 256, 4  # sizes of the demo model's queries and of the adapter


def write_models(directory: Path) -> Path:
    """Writes the models and returns the file for `--config`."""
    adapter = _adapter().write(directory / ADAPTER)
    demo = {"model": str(MODEL_DIRECTORY)}
    models = [
        {"name": MODEL, "lora": [f"{ADAPTER}={adapter}"], **demo},
        {"name": VECTORS, "task": "embed", **demo},
    ]
    file = directory / "models.yaml"
    file.write_text(yaml.safe_dump({"models": models}))
    return file


def _adapter() -> RandomAdapter:
    random = np.random.default_rng(1)
    halves = {
        f"model.layers.{layer}.self_attn.q_proj": (
            random.normal(0, 0.3, (RANK, WIDTH)).astype(np.float32),
            random.normal(0, 0.3, (WIDTH, RANK)).astype(np.float32),
        )
        for layer in range(NUM_LAYERS)
    }
    return RandomAdapter(halves, {})


if __name__ == "__main__":
    sys.stdout.write(f"{write_models(Path(sys.argv[1]))}\n")
