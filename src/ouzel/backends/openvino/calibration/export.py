"""Writes a calibrated checkpoint as compressed-tensors, which transformers and Ouzel read.

Matrices of layers are `pack-quantized`: int4, or int8 for the matrices that lose most, symmetric in
groups of 64 columns with f16 scales. Embedding, head, norms and biases stay floats.
quantized/compressed_tensors.py has the layout.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.calibrated_entry import (
    Source,
    list_weights,
    make_calibration,
)
from ouzel.backends.openvino.calibration.calibration import (
    GROUP_SIZE,
    Calibration,
    ListedWeights,
    distinct,
)
from ouzel.backends.openvino.calibration.recording import CalibrationText
from ouzel.backends.openvino.calibration.safetensors_file import OutputTensor, write_safetensors
from ouzel.backends.openvino.weights.compress import find_origin
from ouzel.backends.openvino.weights.encodings import Parts, encode_bf16
from ouzel.backends.openvino.weights.finite import silence_warnings
from ouzel.backends.openvino.weights.parallel import map_in_threads
from ouzel.backends.openvino.weights.source import MatrixSpec, Tensor, Tensors
from ouzel.backends.openvino.weights.stored import find_weights
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.checkpoint.model_files import read_config_json
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from ouzel.observability.progress import stage

PLAN = replace(read_weights("int4,embedding=bf16,head=bf16"), recompress=True)
WEIGHTS_FILE = "model.safetensors"
# Architectures of transformers, by which vLLM chooses its own class; the config.json of a converted
# GGUF file has no architecture.
CLASSES = {
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "granite": "GraniteForCausalLM",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
}
Rows = Callable[[], Iterable[NDArray[np.float32]]]
AllParts = Callable[[], Iterable[Parts]]


@dataclass(slots=True)
class Export:
    """Collects the tensors of a checkpoint."""

    tensors: list[OutputTensor] = field(default_factory=list)
    # names of modules by the bits of their weights
    modules: dict[int, list[str]] = field(default_factory=lambda: {4: [], 8: []})
    ignored: list[str] = field(default_factory=list)  # modules whose weights stay floats
    num_quantized: int = 0  # weights in quantised matrices
    quantized_bytes: int = 0

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.quantized_bytes / max(self.num_quantized, 1)

    def add_quantized(self, tensor: Tensor, bits: int, parts: AllParts) -> None:
        rows, columns = tensor.shape
        scales: list[NDArray[np.generic]] = []  # few enough to wait until the values are written

        def values() -> Iterator[NDArray[np.generic]]:
            for some in parts():
                scales.append(some["scales"])
                yield pack_levels(some["values"], bits)

        added = [
            OutputTensor(tensor.name + "_packed", "I32", (rows, columns * bits // 32), values),
            OutputTensor(
                tensor.name + "_scale", "F16", (rows, columns // GROUP_SIZE), lambda: scales
            ),
            OutputTensor(
                tensor.name + "_shape", "I64", (2,), lambda: [np.array([rows, columns], np.int64)]
            ),
        ]
        self.tensors += added
        self.num_quantized += rows * columns
        self.quantized_bytes += added[0].num_bytes + added[1].num_bytes


def export_checkpoint(
    directory: Path, config: HfConfig, made: Path, text: CalibrationText
) -> Export:
    """Writes weights and config.json into the directory `made`.

    Raises ModelLoadError if the checkpoint cannot be calibrated or written.
    """
    if config.text_model() is not config:
        raise ModelLoadError(
            f"ouzel quantize takes a language model without other modes, given {config.model_type}"
        )
    stored = find_weights(directory, config)
    tensors, _ = stored.open()
    source = Source(directory, config, tensors)
    for target in list_weights(source, PLAN).targets:
        refuse_others(target.spec, tensors)
    with make_calibration(source, PLAN, made.parent, text) as (calibration, listed):
        export = collect(tensors, listed, calibration)
        with stage("encoding the weights", sum(file.stat().st_size for file in stored.files)):
            write_safetensors(made / WEIGHTS_FILE, export.tensors)
    write_config(directory, made, export)
    return export


def refuse_others(spec: MatrixSpec, tensors: Tensors) -> None:
    """Raises ModelLoadError for a matrix that the export does not support yet."""
    origin = find_origin(spec, "int4", tensors)
    if len(spec.shape) != 2:
        raise ModelLoadError(
            f"ouzel quantize does not support experts or latent attention yet, found {spec.key}"
        )
    if any(tensor.is_transposed for tensor in origin.tensors):
        raise ModelLoadError(
            "ouzel quantize does not support matrices that are stored transposed, as GPT-2's, yet, "
            f"found {spec.key}"
        )


def collect(tensors: Tensors, listed: ListedWeights, calibration: Calibration) -> Export:
    """Collects the calibrated matrices, the matrices that stay floats, and the arrays."""
    export = Export()
    for target in distinct(listed.targets):
        spec = target.spec
        origin = find_origin(spec, "int4", tensors)
        encoding = calibration.encoding(spec)
        for tensor in origin.tensors:
            module = tensor.name.removesuffix(".weight")
            if encoding is None:
                export.ignored.append(module)
                export.tensors.append(float_tensor(tensor, make_row_reader(tensors, tensor)))
            else:
                bits = 4 if encoding.values == "i4" else 8
                export.modules[bits].append(module)
                export.add_quantized(
                    tensor, bits, encoded_parts(tensors, tensor, calibration, spec)
                )
    for name, shape in listed.arrays.items():
        if name not in {tensor.name for tensor in export.tensors}:
            export.tensors.append(
                float_tensor(Tensor(name, shape), make_row_reader(tensors, Tensor(name, shape)))
            )
    return export


def make_row_reader(tensors: Tensors, tensor: Tensor) -> Rows:
    return lambda: tensors.rows(tensor)


def encoded_parts(
    tensors: Tensors, tensor: Tensor, calibration: Calibration, spec: MatrixSpec
) -> AllParts:
    def parts() -> Iterator[Parts]:
        found = calibration.encoder(spec)
        assert found is not None
        return map_in_threads(silence_warnings(found[1]), tensors.rows(tensor))

    return parts


def pack_levels(values: NDArray[np.generic], bits: int) -> NDArray[np.generic]:
    """Packs levels into int32, the lowest bits first, each moved up by half the range."""
    moved = values.view(np.uint8) ^ np.uint8(0x88 if bits == 4 else 0x80)
    return np.ascontiguousarray(moved).view(np.int32)


def float_tensor(tensor: Tensor, rows: Rows) -> OutputTensor:
    """Returns the tensor in the narrowest type that represents its numbers exactly.

    A matrix without such a type becomes bf16.
    """
    if all(_is_bf16(chunk) for chunk in rows()):
        dtype = "BF16"
    elif all((chunk.astype(np.float16) == chunk).all() for chunk in rows()):
        dtype = "F16"
    else:
        dtype = "F32" if len(tensor.shape) == 1 else "BF16"

    def chunks() -> Iterator[NDArray[np.generic]]:
        for chunk in rows():
            match dtype:
                case "BF16":
                    yield encode_bf16(chunk)["values"]
                case "F16":
                    yield chunk.astype(np.float16)
                case _:
                    yield chunk.astype(np.float32)

    return OutputTensor(tensor.name, dtype, tensor.shape, chunks)


def _is_bf16(chunk: NDArray[np.float32]) -> bool:
    bits = np.ascontiguousarray(chunk, np.float32).view(np.uint32)
    return not (bits & np.uint32(0xFFFF)).any()


def write_config(directory: Path, made: Path, export: Export) -> None:
    config: dict[str, Any] = read_config_json(directory)
    for key in ("quantization_config", "compression_config"):
        config.pop(key, None)
    if "architectures" not in config and config["model_type"] in CLASSES:
        config["architectures"] = [CLASSES[config["model_type"]]]
    config["quantization_config"] = quantization_config(export)
    (made / "config.json").write_text(
        json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def quantization_config(export: Export) -> dict[str, Any]:
    """Returns the entry for config.json: it names the modules of int8; all other linear modules are
    int4.
    """
    targets = {4: ["Linear"], 8: sorted(export.modules[8])}
    groups = {
        f"group_{index}": {
            "targets": targets[bits],
            "format": "pack-quantized",
            "weights": {
                "num_bits": bits,
                "type": "int",
                "symmetric": True,
                "strategy": "group",
                "group_size": GROUP_SIZE,
                "dynamic": False,
            },
            "input_activations": None,
            "output_activations": None,
        }
        for index, bits in enumerate(bits for bits in (8, 4) if export.modules[bits])
    }
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": sorted({"lm_head", *export.ignored}),
    }
