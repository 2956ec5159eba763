"""Computes a vector or a weight of each token from the hidden rows of a text.

The heads run here and not in the graph, because the graph may compute in bf16: these products are
in float32.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ouzel.backends.openvino.pooling import DenseLayer, Rows, read_dense
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    read_chunks,
    to_float32,
)
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.backends.openvino.weights.torch_files import read_torch_file
from ouzel.checkpoint.late_interaction import VECTOR_HEAD, WEIGHT_HEAD
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import ModelLoadError
from ouzel.pooling import VectorForm


@dataclass(frozen=True, slots=True)
class TokenHeads:
    """The heads of a model; the vector of a token has `vector_size` values."""

    vectors: tuple[DenseLayer, ...]
    vector_size: int
    weights: DenseLayer | None = None

    def apply(self, form: VectorForm, rows: Rows) -> Rows:
        """Returns [tokens, vector_size] for the form `tokens`, [tokens] for `weights`.

        `rows` are the hidden rows of a text, [tokens, hidden_size].
        """
        if form == "weights":
            assert self.weights is not None, "the engine has checked the form"
            return self.weights.apply(rows)[:, 0]
        for layer in self.vectors:
            rows = layer.apply(rows)
        return rows if self.vectors else rows.copy()


def list_forms(directory: Path, files: SentenceFiles) -> tuple[VectorForm, ...]:
    """Returns the forms of vectors that an encoder makes, the default first."""
    forms: list[VectorForm] = ["text"] if files.makes_whole_vectors else []
    if len(files.modes) <= 1 or files.interaction is not None:
        forms.append("tokens")
    if (directory / WEIGHT_HEAD).is_file():
        forms.append("weights")
    return tuple(forms)


def read_token_heads(directory: Path, files: SentenceFiles, hidden_size: int) -> TokenHeads:
    """Reads the heads of an encoder. Raises ModelLoadError.

    A model without a head for tokens has the Dense layers of its vectors, or none.
    """
    weights = None
    if (directory / WEIGHT_HEAD).is_file():
        weights = _read_torch_layer(directory / WEIGHT_HEAD, hidden_size, num_outputs=1)
    layers = _read_vector_layers(directory, files, hidden_size)
    size = hidden_size
    for layer in layers:
        num_outputs, num_inputs = layer.weight.shape
        if num_inputs != size:
            raise ModelLoadError(
                f"{directory}: the layers behind the encoder must take {size} values, one takes "
                f"{num_inputs}"
            )
        size = num_outputs
    return TokenHeads(layers, size, weights)


def _read_vector_layers(
    directory: Path, files: SentenceFiles, hidden_size: int
) -> tuple[DenseLayer, ...]:
    if files.interaction is None or files.interaction.head == "dense modules":
        return tuple(read_dense(each) for each in files.dense) if len(files.modes) <= 1 else ()
    if files.interaction.head == VECTOR_HEAD:
        return (_read_torch_layer(directory / VECTOR_HEAD, hidden_size),)
    checkpoint, name = Checkpoint(directory), "linear.weight"
    found = checkpoint.find(name)
    num_outputs = found.shape[0] if found is not None and len(found.shape) == 2 else hidden_size
    weight = checkpoint.floats(name, (num_outputs, hidden_size))
    return (DenseLayer(weight, None, "identity"),)


def _read_torch_layer(path: Path, hidden_size: int, num_outputs: int | None = None) -> DenseLayer:
    """Reads the weight and bias of a layer; `num_outputs` None: as many as the weight has rows."""
    tensors = read_torch_file(path)
    weight = tensors.get("weight")
    if num_outputs is None:
        num_outputs = weight.shape[0] if weight is not None and weight.shape else hidden_size
    return DenseLayer(
        _read_numbers(path, weight, "weight", (num_outputs, hidden_size)),
        _read_numbers(path, tensors.get("bias"), "bias", (num_outputs,)),
        "identity",
    )


def _read_numbers(
    path: Path, found: TensorLocation | None, name: str, shape: tuple[int, ...]
) -> Rows:
    if found is None or found.shape != shape or found.dtype not in PLAIN_TYPES:
        stored = "none" if found is None else f"{found.dtype} {list(found.shape)}"
        raise ModelLoadError(
            f"{path}: {name} must be {list(shape)} numbers of {', '.join(PLAIN_TYPES)}, "
            f"found {stored}"
        )
    chunks = [to_float32(chunk, found.dtype) for chunk in read_chunks(found, shape[-1])]
    return np.concatenate(chunks).reshape(shape)
