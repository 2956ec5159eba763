"""Reads adapters in PEFT's format: a directory with a configuration and the matrices A and B.

`adapter_config.json` describes the adapter, `adapter_model.safetensors` has A and B. For each
adapted matrix W [rows, columns], W x becomes W x + scale * B (A x). Everything else that PEFT can
write is refused by name: no part of an adapter is left out silently.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from ouzel.backends.name_patterns import names_by_pattern
from ouzel.backends.openvino.graph.adapter_shape import AdaptedMatrix
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    read_chunks,
    read_header,
    to_float32,
)
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.model_files import brief, read_json_object
from ouzel.errors import ModelLoadError

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
_ROOT = "base_model.model."
_HALVES = {
    ".lora_A.weight": "a",
    ".lora_B.weight": "b",
    ".lora_A.default.weight": "a",
    ".lora_B.default.weight": "b",
}
# initialisations that change the base weights
_CHANGES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
_LARGEST = np.float32(2**127 * (2 - 2**-7))  # the largest value of bf16
_REFUSED = {
    "use_dora": "DoRA scales whole matrices, which is not supported",
    "lora_bias": "biases of adapters are not supported",
    "use_qalora": "QALoRA is not supported",
    "modules_to_save": "whole modules beside the adapter are not supported; train it without them",
    "target_parameters": "experts' parameters cannot be adapted",
    "trainable_token_indices": "embeddings cannot be adapted",
    "layer_replication": "replicated layers are not supported",
    "alora_invocation_tokens": "adapters that begin within a prompt (aLoRA) are not supported",
    "arrow_config": "Arrow routing is not supported",
    "use_bdlora": "block-diagonal adapters are not supported",
    "kasa_config": "KaSA is not supported",
    "monteclora_config": "MonteCLoRA is not supported",
    "velora_config": "VeLoRA is not supported",
}

Rank = Annotated[int, Meta(ge=1)]


class AdapterConfig(msgspec.Struct, frozen=True):
    peft_type: str = "LORA"
    r: Rank = 8
    lora_alpha: float = 8
    use_rslora: bool = False
    bias: str = "none"
    rank_pattern: dict[str, Rank] | None = None
    alpha_pattern: dict[str, float] | None = None
    init_lora_weights: bool | str | None = True

    @property
    def max_rank(self) -> int:
        return max([self.r, *(self.rank_pattern or {}).values()])


class AdapterFiles:
    def __init__(
        self, directory: Path, matrices: Mapping[str, AdaptedMatrix], max_rank: int
    ) -> None:
        """Raises ModelLoadError if the directory has no adapter for a model with these matrices."""
        self._directory = directory
        self._matrices = matrices
        self._config = read_config(directory)
        self._modules: dict[str, str] = {}  # the name of each matrix in the adapter's model
        self._halves = self._find_halves()
        self._ranks = {name: self._check_rank(name, max_rank) for name in self._halves}
        self._alphas = self._values_by_pattern(self._config.alpha_pattern or {}, "alpha_pattern")
        self._check_ranks()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._halves)

    def read(self, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns A [rank, columns], and B [rows, rank] times the scale.

        Raises ModelLoadError if a value is too large for bf16 or not finite.
        """
        alpha, rank = self._alphas.get(name, self._config.lora_alpha), self._ranks[name]
        scale = alpha / (math.sqrt(rank) if self._config.use_rslora else rank)
        a, b = (_read_whole(self._halves[name][half]) for half in "ab")
        b *= np.float32(scale)
        for half, values in (("A", a), ("B", b)):
            if not (np.abs(values) <= _LARGEST).all():
                raise ModelLoadError(
                    f"{self._directory / WEIGHTS_FILE}: lora_{half} of {name} has values that are "
                    "not finite or too large for bf16"
                )
        return a, b

    def _find_halves(self) -> dict[str, dict[str, TensorLocation]]:
        path = self._directory / WEIGHTS_FILE
        if not path.is_file():
            hint = ""
            if (self._directory / "adapter_model.bin").is_file():
                hint = (
                    " (adapter_model.bin, a pickle, is not read: "
                    "save the adapter again with safe_serialization)"
                )
            raise ModelLoadError(f"{self._directory} has no {WEIGHTS_FILE}{hint}")
        halves: dict[str, dict[str, TensorLocation]] = {}
        for stored, location in read_header(path).items():
            name, half = self._split(stored)
            if halves.setdefault(name, {}).setdefault(half, location) is not location:
                raise ModelLoadError(f"{path} has two tensors for {brief(stored)}")
        if not halves:
            raise ModelLoadError(f"{path} has no tensors")
        return halves

    def _split(self, stored: str) -> tuple[str, str]:
        """Returns the name of the matrix that a tensor belongs to, and its half, `a` or `b`."""
        path = self._directory / WEIGHTS_FILE
        suffix = next((suffix for suffix in _HALVES if stored.endswith(suffix)), None)
        if suffix is None:
            raise ModelLoadError(
                f"{path}: tensor {brief(stored)} does not belong to a LoRA adapter of a supported "
                "kind"
            )
        module = stored.removeprefix(_ROOT).removesuffix(suffix)
        name = plain_name(module)
        if name not in self._matrices:
            kinds = ", ".join(sorted({each.rpartition(".")[2] for each in self._matrices}))
            raise ModelLoadError(
                f"{path}: {name} cannot be adapted; in the layers of this model these matrices "
                f"can: {kinds}"
            )
        self._modules[name] = module
        return name, _HALVES[suffix]

    def _check_rank(self, name: str, max_rank: int) -> int:
        path = self._directory / WEIGHTS_FILE
        halves, matrix = self._halves[name], self._matrices[name]
        if len(halves) != 2:
            raise ModelLoadError(f"{path}: {name} lacks lora_{'B' if 'a' in halves else 'A'}")
        rank = halves["a"].shape[0] if halves["a"].shape else 0
        for half, shape in (("a", (rank, matrix.num_columns)), ("b", (matrix.num_rows, rank))):
            location = halves[half]
            if location.shape != shape:
                raise ModelLoadError(
                    f"{path}: tensor {brief(location.name)} has the shape {list(location.shape)}, "
                    f"the model needs {list(shape)}"
                )
            if location.dtype not in PLAIN_TYPES:
                raise ModelLoadError(
                    f"{path}: tensor {brief(location.name)} is stored as {location.dtype}; "
                    f"supported are {', '.join(PLAIN_TYPES)}"
                )
        if not 1 <= rank <= max_rank:
            raise ModelLoadError(
                f"{path}: {name} has rank {rank}, must be from 1 to max_lora_rank, {max_rank}"
            )
        return rank

    def _check_ranks(self) -> None:
        """Raises ModelLoadError if the rank of a matrix differs from the rank in the configuration.

        The scale depends on the configured rank, so one of the two must be wrong.
        """
        ranks = self._values_by_pattern(self._config.rank_pattern or {}, "rank_pattern")
        for name, rank in self._ranks.items():
            if (configured := ranks.get(name, self._config.r)) != rank:
                raise ModelLoadError(
                    f"{self._directory / CONFIG_FILE}: the rank of {name} is {configured:g}, but "
                    f"its tensors have rank {rank}"
                )

    def _values_by_pattern(self, patterns: Mapping[str, float], key: str) -> dict[str, float]:
        """Returns the value of each matrix whose module matches a pattern; the first match counts.

        A pattern matches the end of a module's name, after a dot or as a whole.
        """
        by_regex = {rf"(.*\.)?({pattern})$": value for pattern, value in patterns.items()}
        found = names_by_pattern(by_regex, list(self._modules.values()), f"{CONFIG_FILE}: {key}")
        values: dict[str, float] = {}
        for name, module in self._modules.items():
            own = [value for regex, value in by_regex.items() if module in found[regex]]
            if own:
                values[name] = own[0]
        return values


def read_config(directory: Path) -> AdapterConfig:
    """Reads the configuration. Raises ModelLoadError if it is broken or not supported."""
    path = directory / CONFIG_FILE
    if not path.is_file():
        raise ModelLoadError(f"{directory} is not a PEFT adapter: it has no {CONFIG_FILE}")
    content = read_json_object(path)
    try:
        config = msgspec.convert(content, AdapterConfig)
    except msgspec.ValidationError as error:
        raise ModelLoadError(f"{path}: {error}") from error
    if config.peft_type != "LORA":
        raise ModelLoadError(f"{path}: peft_type must be LORA, given {brief(config.peft_type)}")
    if config.bias != "none":
        raise ModelLoadError(f"{path}: bias must be none, given {brief(config.bias)}")
    for key, why in _REFUSED.items():
        if content.get(key):
            raise ModelLoadError(f"{path}: {key}: {why}")
    if isinstance(config.init_lora_weights, str) and config.init_lora_weights.lower().startswith(
        _CHANGES_BASE
    ):
        raise ModelLoadError(
            f"{path}: init_lora_weights {brief(config.init_lora_weights)} has changed the base "
            "weights: save the adapter in the usual form "
            "(path_initial_model_for_weight_conversion)"
        )
    return config


def _read_whole(location: TensorLocation) -> NDArray[np.float32]:
    """Reads a tensor as float32."""
    chunks = [
        to_float32(chunk, location.dtype) for chunk in read_chunks(location, location.shape[-1])
    ]
    return np.concatenate(chunks).copy()
