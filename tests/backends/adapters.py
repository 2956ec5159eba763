"""Writes random adapters in PEFT's format, and checkpoints with adapters merged into matrices."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.adapter_shape import (
    HEAD,
    AdaptedMatrix,
    AdapterLimits,
    AdapterShape,
)
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.safetensors import (
    Checkpoint,
    find_files,
    read_header,
    to_float32,
)
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.weight_files import INDEX_FILE, SINGLE_FILE
from ouzel.config.adapters import AdapterPart
from ouzel.config.weights import read_weights
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.types.engine_info import EngineInfo
from tests.backends.quantize import save

Floats = NDArray[np.float32]
ADAPTER_PARTS: tuple[AdapterPart, ...] = get_args(AdapterPart)
_MATRICES_ONLY = AdapterLimits(1)


@dataclass(frozen=True)
class RandomAdapter:
    """An adapter: A and B of each matrix by the name, and keys of `adapter_config.json`."""

    halves: Mapping[str, tuple[Floats, Floats]]
    config: Mapping[str, object]
    others: Mapping[str, Floats] = field(default_factory=dict)  # further tensors by their names

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True)
        tensors: dict[str, Floats] = {}
        for name, (a, b) in self.halves.items():
            tensors |= {
                f"base_model.model.{name}.lora_A.weight": a,
                f"base_model.model.{name}.lora_B.weight": b,
            }
        tensors |= {f"base_model.model.{name}": values for name, values in self.others.items()}
        save(
            directory / "adapter_model.safetensors",
            {name: ("F32", values) for name, values in tensors.items()},
        )
        rank = next(iter(self.halves.values()))[0].shape[0]
        config = {
            "peft_type": "LORA",
            "r": rank,
            "lora_alpha": 2 * rank,
            "bias": "none",
            **self.config,
        }
        (directory / "adapter_config.json").write_text(json.dumps(config))
        return directory

    def deltas(self, scale: float = 2.0) -> dict[str, Floats]:
        return {
            name: (np.float32(scale) * b @ a).astype(np.float32)
            for name, (a, b) in self.halves.items()
        }


def read_shape(directory: Path, limits: AdapterLimits) -> AdapterShape:
    """Returns the parts of a checkpoint that adapters within the limits can change."""
    config = read_hf_config(directory).text_model()
    builder = Builder(MeasuredWeights(Checkpoint(directory)), read_weights("f32"), adapters=limits)
    adapters = family(config.model_type)(config, builder).adapters
    assert adapters is not None
    return adapters


def list_adapted_matrices(directory: Path) -> tuple[AdaptedMatrix, ...]:
    """Returns the matrices of a checkpoint that take an adapter."""
    return read_shape(directory, AdapterLimits(1)).matrices


def random_adapter(
    directory: Path,
    seed: int,
    rank: int = 3,
    takes: Callable[[str], bool] = lambda name: True,
    limits: AdapterLimits = _MATRICES_ONLY,
    **config: object,
) -> RandomAdapter:
    """Draws an adapter for each matrix of a checkpoint whose name `takes` accepts."""
    random = np.random.default_rng(seed)
    halves = {
        matrix.name: (
            random.normal(0, 0.3, (rank, matrix.num_columns)).astype(np.float32),
            random.normal(0, 0.1, (matrix.num_rows, rank)).astype(np.float32),
        )
        for matrix in read_shape(directory, limits).matrices
        if takes(matrix.name)
    }
    return RandomAdapter(halves, config)


def random_parts(directory: Path, limits: AdapterLimits) -> tuple[RandomAdapter, dict[str, Floats]]:
    """Draws an adapter with DoRA, norms, embedding and head; also returns its merged differences.

    A head that is the embedding stays as it is, like the embedding: merged, both would change.
    """
    random = np.random.default_rng(1)
    shape, base = read_shape(directory, limits), read_tensors(directory)
    others: dict[str, Floats] = {}
    deltas: dict[str, Floats] = {}
    head = [matrix for matrix in shape.matrices if matrix.name == HEAD]
    table = shape.embedding
    is_tied = bool(head) and table is not None and head[0].weights is table.weights
    adapter = random_adapter(
        directory, 1, limits=limits, takes=lambda name: name != HEAD or not is_tied
    )
    is_turned = read_hf_config(directory).model_type == "gpt2"  # Conv1D is stored [columns, rows]
    for name, delta in adapter.deltas().items():
        stored = base[name + ".weight"]
        own = stored.T if is_turned and name != HEAD else stored.reshape(delta.shape)
        length = np.linalg.norm(own + delta, axis=1, keepdims=True)
        new_length = length * random.uniform(0.7, 1.3, length.shape)
        others[name + ".lora_magnitude_vector"] = new_length[:, 0].astype(np.float32)
        deltas[name] = ((own + delta) * (new_length / length) - own).astype(np.float32)
    for name, values in shape.norms.items():
        delta = random.normal(0, 0.2, values.shape).astype(np.float32)
        deltas[name.removesuffix(".weight")], others[name] = delta, base[name] + delta
    if table is not None and not is_tied:
        a = random.normal(0, 0.3, (3, table.num_rows)).astype(np.float32)
        b = random.normal(0, 0.1, (table.num_columns, 3)).astype(np.float32)
        others |= {table.name + ".lora_embedding_A": a, table.name + ".lora_embedding_B": b}
        own, delta = base[table.name + ".weight"], 2 * (b @ a).T
        length = np.linalg.norm(own + delta, axis=0)
        new_length = length * random.uniform(0.7, 1.3, length.shape)
        others[table.name + ".lora_magnitude_vector"] = new_length.astype(np.float32)
        deltas[table.name] = ((own + delta) * (new_length / length) - own).astype(np.float32)
    has_weights = any(name.endswith(".weight") for name in shape.norms)
    config = {"use_dora": True, "modules_to_save": ["norm"] * has_weights, "bias": "all"}
    return RandomAdapter(adapter.halves, config, others), deltas


def read_tensors(directory: Path) -> dict[str, Floats]:
    """Returns the tensors of a checkpoint by their plain names."""
    return {
        plain_name(name): read(location)
        for path in find_files(directory)
        for name, location in read_header(path).items()
    }


def merge(directory: Path, deltas: Mapping[str, Floats], merged: Path) -> Path:
    """Adds `deltas` to the matrices of a checkpoint, and writes it in f32 into `merged`."""
    shutil.copytree(directory, merged, ignore=shutil.ignore_patterns("*.safetensors", INDEX_FILE))
    if read_hf_config(directory).model_type == "gpt2":  # Conv1D is stored [columns, rows]
        deltas = {
            name: delta.T if name.startswith("model.layers.") else delta
            for name, delta in deltas.items()
        }
    tensors: dict[str, Floats] = {}
    for path in find_files(directory):
        for name, location in read_header(path).items():
            own = deltas.get(plain_name(name).removesuffix(".weight"))
            tensors[name] = (
                read(location) if own is None else read(location) + own.reshape(location.shape)
            )
    save(merged / SINGLE_FILE, {name: ("F32", values) for name, values in tensors.items()})
    return merged


def read(location: TensorLocation) -> Floats:
    stored = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}[location.dtype]
    with location.path.open("rb") as file:
        file.seek(location.offset)
        values = np.fromfile(file, stored, int(np.prod(location.shape)))
    return to_float32(values, location.dtype).reshape(location.shape)


class AdaptedRunner:
    """A `ModelRunner` that applies the adapters in `slots`, one for each sequence of a batch.

    If a batch has another number of sequences, all its rows use the adapter in the first slot.
    """

    def __init__(self, runner: ModelRunner, *slots: int) -> None:
        self._runner = runner
        self._slots = slots

    @property
    def info(self) -> EngineInfo:
        return self._runner.info

    def run(self, batch: ForwardBatch) -> Floats:
        lens = np.diff(batch.subsequence_begins)
        slots = self._slots if len(self._slots) == len(lens) else self._slots[:1] * len(lens)
        return self._runner.run(
            replace(batch, adapter_slots=np.repeat(np.array(slots, np.int32), lens))
        )

    def copy_blocks(self, sources: list[int], destinations: list[int]) -> None:
        self._runner.copy_blocks(sources, destinations)

    def close(self) -> None:
        self._runner.close()
