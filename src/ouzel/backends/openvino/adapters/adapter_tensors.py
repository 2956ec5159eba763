"""Lists the tensors of an adapter by the module that they belong to, and the parts of the adapter.

PEFT names a tensor `base_model.model.MODULE.SUFFIX`; the suffix tells the kind of the tensor.
"""

import re
from pathlib import Path
from typing import Literal

from ouzel.backends.openvino.graph.adapter_shape import HEAD
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.safetensors import PLAIN_TYPES, read_header
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.model_files import brief
from ouzel.checkpoint.weight_files import ADAPTER_WEIGHTS
from ouzel.config.adapters import AdapterPart
from ouzel.errors import ModelLoadError

_ROOT = "base_model.model."

# `base` is a copy of the model's own weights; `weight` replaces weights whole
Kind = Literal[
    "a",
    "b",
    "b_bias",
    "embedding_a",
    "embedding_b",
    "magnitude",
    "tokens",
    "bias",
    "base",
    "weight",
]
_KINDS: dict[str, Kind] = {
    ".lora_A.weight": "a",
    ".lora_B.weight": "b",
    ".lora_B.bias": "b_bias",
    ".lora_embedding_A": "embedding_a",
    ".lora_embedding_B": "embedding_b",
    ".lora_magnitude_vector": "magnitude",
    ".lora_magnitude_vector.weight": "magnitude",
    ".token_adapter.trainable_tokens_delta": "tokens",
    ".base_layer.bias": "bias",
    ".base_layer.weight": "base",
    ".bias": "bias",
    ".weight": "weight",
}
# Names of other versions of PEFT have the adapter's name and the wrapper's name in them.
_WRAPPERS = re.compile(r"\.(default|modules_to_save)(?=\.|$)")
_PARTS: dict[Kind, AdapterPart] = {
    "magnitude": "dora",
    "bias": "bias",
    "b_bias": "bias",
    "weight": "norm",
    "embedding_a": "embedding",
    "embedding_b": "embedding",
    "tokens": "embedding",
}

Modules = dict[str, dict[Kind, TensorLocation]]


class AdapterTensors:
    """The tensors of an adapter by the plain name of their module."""

    def __init__(self, directory: Path) -> None:
        """Raises ModelLoadError if the file is missing or broken, or has an unknown tensor."""
        self.path = directory / ADAPTER_WEIGHTS
        self.modules: Modules = {}
        self.stored_names: dict[str, str] = {}  # the module's name in the adapter's model
        if not self.path.is_file():
            hint = ""
            if (directory / "adapter_model.bin").is_file():
                hint = (
                    " (adapter_model.bin, a pickle, is not read: "
                    "save the adapter again with safe_serialization)"
                )
            raise ModelLoadError(f"{directory} has no {ADAPTER_WEIGHTS}{hint}")
        for stored, location in read_header(self.path).items():
            self._add(stored, location)
        if not self.modules:
            raise ModelLoadError(f"{self.path} has no tensors")

    def _add(self, stored: str, location: TensorLocation) -> None:
        name = _WRAPPERS.sub("", stored.removeprefix(_ROOT))
        suffix = next((suffix for suffix in _KINDS if name.endswith(suffix)), None)
        if suffix is None or ".lora_" in name.removesuffix(suffix):
            raise ModelLoadError(
                f"{self.path}: tensor {brief(stored)} does not belong to a LoRA adapter of a "
                "supported kind"
            )
        if location.dtype not in PLAIN_TYPES:
            raise ModelLoadError(
                f"{self.path}: tensor {brief(stored)} is stored as {location.dtype}; "
                f"supported are {', '.join(PLAIN_TYPES)}"
            )
        module = name.removesuffix(suffix)
        plain = plain_name(module + ".").removesuffix(".")
        if not plain:
            raise ModelLoadError(f"{self.path}: tensor {brief(stored)} names no module")
        self.stored_names[plain] = module
        kinds = self.modules.setdefault(plain, {})
        if kinds.setdefault(_KINDS[suffix], location) is not location:
            raise ModelLoadError(f"{self.path} has two tensors for {brief(stored)}")

    def find_parts(self) -> frozenset[AdapterPart]:
        """Returns the parts that a graph needs for this adapter."""
        return frozenset(
            part
            for name, kinds in self.modules.items()
            for kind, location in kinds.items()
            for part in find_parts(name, kind, location)
        )


def find_parts(name: str, kind: Kind, location: TensorLocation) -> frozenset[AdapterPart]:
    """Returns the parts that a graph needs for one tensor of a module.

    Tokens of the embedding may be tokens of the head, too: the two may be one matrix. No graph
    takes whole weights of more dimensions than a norm has.
    """
    if kind == "weight" and len(location.shape) > 1:
        return frozenset()
    parts: set[AdapterPart] = {_PARTS[kind]} if kind in _PARTS else set()
    if name == HEAD:
        parts.discard("embedding")
    if name == HEAD or kind == "tokens":
        parts.add("head")
    return frozenset(parts)
