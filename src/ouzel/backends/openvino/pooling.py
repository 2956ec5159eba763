"""Pools the hidden rows of texts into one vector a text, by the sentence-transformers files.

Pooling is done here and not in the graph, because the graph may compute in bf16: these sums are in
float32.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # counts and weights alike

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.safetensors import Checkpoint, holds_tensors
from ouzel.backends.openvino.weights.source import Tensor, Tensors
from ouzel.checkpoint.activations import Activation, apply_activation
from ouzel.checkpoint.dense_file import DenseFile
from ouzel.checkpoint.sentence_files import PoolingMode, SentenceFiles
from ouzel.errors import ModelLoadError
from ouzel.gguf.files import find_gguf, holds_gguf

Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DenseLayer:
    weight: Rows  # [out, in]
    bias: Rows | None
    activation: Activation
    adds_input: bool = False  # adds the input, or its product with `residual`, to the output
    residual: Rows | None = None  # [out, in]

    def apply(self, vectors: Rows) -> Rows:
        product = vectors @ self.weight.T
        output = apply_activation(
            product if self.bias is None else product + self.bias, self.activation
        )
        if not self.adds_input:
            return output
        added: Rows = vectors if self.residual is None else vectors @ self.residual.T
        total: Rows = output + added
        return total


class VectorPooling:
    def __init__(self, files: SentenceFiles, hidden_size: int) -> None:
        """Raises ModelLoadError if a Dense layer does not fit or cannot be read."""
        self.vector_size = compute_vector_size(files, hidden_size)
        self._modes = files.modes
        self._dense = [read_dense(each) for each in files.dense]

    def vectors(self, rows: Rows, begins: NDArray[np.int32]) -> Rows:
        """Returns the vectors of B texts, [B, vector_size].

        `rows` are the hidden rows of all tokens, [T, hidden_size]. `begins` has the first row of
        each text and at last T, [B + 1].
        """
        pooled = np.concatenate([_POOLED[mode](rows, begins) for mode in self._modes], axis=1)
        for layer in self._dense:
            pooled = layer.apply(pooled)
        return pooled


def compute_vector_size(files: SentenceFiles, hidden_size: int) -> int:
    """Returns the number of values in a vector.

    Raises ModelLoadError if a Dense layer takes another number of values than the step before it
    gives.
    """
    size = hidden_size * len(files.modes)
    for each in files.dense:
        if each.num_inputs != size:
            raise ModelLoadError(
                f"{each.directory}: in_features must be {size}, found {each.num_inputs}"
            )
        size = each.num_outputs
    return size


def _mean(rows: Rows, begins: NDArray[np.int32]) -> Rows:
    return _shares(_sums(rows, begins), np.diff(begins))


def _mean_sqrt(rows: Rows, begins: NDArray[np.int32]) -> Rows:
    return _shares(_sums(rows, begins), np.sqrt(np.diff(begins)))


def _weighted_mean(rows: Rows, begins: NDArray[np.int32]) -> Rows:
    lens = np.diff(begins)
    weights = (np.arange(len(rows)) - np.repeat(begins[:-1], lens) + 1).astype(np.float32)
    return _shares(_sums(rows * weights[:, None], begins), np.add.reduceat(weights, begins[:-1]))


def _shares(sums: Rows, amounts: NDArray[Any]) -> Rows:
    divisors: Rows = amounts[:, None].astype(np.float32)
    shares: Rows = sums / divisors
    return shares


def _sums(rows: Rows, begins: NDArray[np.int32]) -> Rows:
    sums: Rows = np.add.reduceat(rows, begins[:-1], axis=0)
    return sums


def _max(rows: Rows, begins: NDArray[np.int32]) -> Rows:
    largest: Rows = np.maximum.reduceat(rows, begins[:-1], axis=0)
    return largest


_POOLED: dict[PoolingMode, Callable[[Rows, NDArray[np.int32]], Rows]] = {
    "cls": lambda rows, begins: rows[begins[:-1]],
    "lasttoken": lambda rows, begins: rows[begins[1:] - 1],
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
    "max": _max,
}


def read_dense(file: DenseFile) -> DenseLayer:
    """Reads the weights and the bias of a Dense layer. Raises ModelLoadError.

    The weight of a GGUF model is in the model's file, under the name of the layer's directory.
    """
    checkpoint, name = _open_dense(file.directory)
    sizes = file.num_outputs, file.num_inputs
    needs_residual = file.has_residual and file.num_inputs != file.num_outputs
    return DenseLayer(
        _read_floats(checkpoint, f"{name}.weight", sizes),
        _read_floats(checkpoint, f"{name}.bias", sizes[:1]) if file.has_bias else None,
        file.activation,
        adds_input=file.has_residual,
        residual=_read_floats(checkpoint, "residual.weight", sizes) if needs_residual else None,
    )


def _open_dense(directory: Path) -> tuple[Tensors, str]:
    """Returns the tensors of a Dense layer, and the name before `.weight`."""
    if holds_tensors(directory) or not holds_gguf(directory.parent):
        return Checkpoint(directory), "linear"
    return GgufCheckpoint(find_gguf(directory.parent)), f"{directory.name}.linear"


def _read_floats(tensors: Tensors, name: str, shape: tuple[int, ...]) -> Rows:
    return np.concatenate(list(tensors.rows(Tensor(name, shape)))).reshape(shape)
