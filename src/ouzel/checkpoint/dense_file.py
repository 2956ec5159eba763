"""Reads the description of a Dense module of sentence-transformers or PyLate."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ouzel.checkpoint.activations import Activation
from ouzel.checkpoint.model_files import CONFIG_FILE, read_config_json
from ouzel.errors import ModelLoadError

# The names of the activations in torch.nn.modules.
TORCH_ACTIVATIONS: Mapping[str, Activation] = {
    "Identity": "identity",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "ReLU": "relu",
    "GELU": "gelu",
}
_MAX_SIZE = 2**18


@dataclass(frozen=True, slots=True)
class DenseFile:
    """A Dense layer: `model.safetensors` with linear.weight [out, in] and linear.bias.

    A residual is added behind the activation: the input, or its product with residual.weight
    [out, in] if the sizes differ.
    """

    directory: Path
    num_inputs: int
    num_outputs: int
    has_bias: bool
    activation: Activation
    has_residual: bool = False


def read_dense_file(directory: Path) -> DenseFile:
    """Reads the config.json of a Dense module. Raises ModelLoadError."""
    path, config = directory / CONFIG_FILE, read_config_json(directory)
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    name = str(activation).rpartition(".")[2]
    if name not in TORCH_ACTIVATIONS:
        raise ModelLoadError(
            f"{path}: activation_function must be one of {', '.join(TORCH_ACTIVATIONS)}, "
            f"found {name[:80]}"
        )
    sizes = [config.get(key) for key in ("in_features", "out_features")]
    if not all(isinstance(size, int) and 0 < size <= _MAX_SIZE for size in sizes):
        raise ModelLoadError(
            f"{path}: in_features and out_features must be from 1 to {_MAX_SIZE}, found {sizes}"
        )
    num_inputs, num_outputs = cast(list[int], sizes)
    return DenseFile(
        directory,
        num_inputs,
        num_outputs,
        config.get("bias", True) is not False,
        TORCH_ACTIVATIONS[name],
        has_residual=bool(config.get("use_residual")),
    )
