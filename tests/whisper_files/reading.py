"""Reads tensors through the interface that graphs use."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.decoding import decode
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.source import Tensor, Tensors
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig


def open_tensors(directory: Path) -> Tensors:
    """Opens the weights of a model directory."""
    tensors, _ = find_weights(directory, HfConfig(read_json(directory / "config.json"))).open()
    return tensors


def read_json(path: Path) -> dict[str, Any]:  # Any: JSON
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def read_rows(tensors: Tensors, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Returns a tensor of transformers' name as a whole."""
    rows = tensors.rows(Tensor(plain_name(name), shape))
    return np.concatenate([chunk.reshape(-1) for chunk in rows]).reshape(shape)


def read_parts(tensors: Tensors, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Returns a tensor decoded from the parts of its encoding."""
    tensor = Tensor(plain_name(name), shape)
    encoding = tensors.stored_encoding(tensor)
    assert encoding is not None
    return np.concatenate([decode(encoding, parts) for parts in tensors.parts(tensor)])
