"""Tests tools/store_int8.py, which stores a checkpoint's weights as the server compresses them.

The bundled models are stored in this form.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.checkpoint_graph import build_model
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.vision import vision_family
from ouzel.backends.openvino.weights.compress import CompressedWeights
from ouzel.backends.openvino.weights.encodings import AUTO_WIDTH
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, MemoryWriter, Tensors
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.config.weights import WidthOption, read_weights
from ouzel.demo import MODEL_DIRECTORY, VISION_MODEL_DIRECTORY
from tests.backends import GOLDEN
from tools.store_int8 import store_int8

CHECKPOINTS = [GOLDEN / "llama", GOLDEN / "qwen2", GOLDEN.parent / "golden_vision" / "qwen3_vl"]


class RecordingWeights(CompressedWeights):
    """Weights that record all matrices that they return."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__(tensors, MemoryWriter())
        self.matrices: dict[str, Matrix] = {}

    def matrix(self, wanted: MatrixSpec, width: WidthOption) -> Matrix:
        matrix = super().matrix(wanted, width)
        self.matrices[wanted.key] = matrix
        return matrix


def compress_as_served(directory: Path, width: str = "auto") -> RecordingWeights:
    """Builds the graph as the server does with this `--weights`; returns its weights."""
    config = read_hf_config(directory)
    text, plan = config.text_model(), read_weights(width)
    stored = find_weights(directory, text)
    weights = RecordingWeights(stored.open()[0])
    plan = plan if stored.compressed_as else plan.with_auto(AUTO_WIDTH)
    build_model(config, family(text.model_type), vision_family(config), weights, plan)
    return weights


@pytest.mark.parametrize("directory", CHECKPOINTS, ids=lambda directory: directory.name)
@pytest.mark.parametrize("width", ["auto", "int8"])
def test_the_server_gets_the_same_matrices(directory: Path, width: str, tmp_path: Path) -> None:
    store_int8(directory, tmp_path)
    before, after = compress_as_served(directory, width), compress_as_served(tmp_path, width)
    assert before.matrices.keys() == after.matrices.keys()
    for name, expected in before.matrices.items():
        matrix = after.matrices[name]
        assert (matrix.encoding, matrix.shape) == (expected.encoding, expected.shape)
        assert all(
            np.array_equal(part, expected.parts[kind]) for kind, part in matrix.parts.items()
        )
    are_int8 = [matrix.encoding.values == "u8" for matrix in after.matrices.values()]
    assert after.num_kept == sum(are_int8) > 0
    assert before.num_kept == 0


@pytest.mark.parametrize(
    "directory", [MODEL_DIRECTORY, VISION_MODEL_DIRECTORY], ids=lambda directory: directory.name
)
def test_the_bundled_models_do_not_change(directory: Path, tmp_path: Path) -> None:
    store_int8(directory, tmp_path)
    for path in directory.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_another_format_is_refused(tmp_path: Path) -> None:
    store_int8(GOLDEN / "qwen2", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"]["ignore"] = []
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit, match="quantised in another way"):
        store_int8(tmp_path, tmp_path)
