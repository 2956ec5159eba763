"""Stores a checkpoint's large matrices in 8 bits, exactly as the server would make them at loading.

    uv run python -m tools.store_int8 DIRECTORY [--output DIRECTORY]

It takes checkpoints that `--weights int8` compresses: safetensors in one file, with a dense
language model, and perhaps an encoder of pictures, which is served in bf16 and stays unchanged. A
row of a matrix gets a scale and a zero point, and the same bits as from `encode_int8`; config.json
then names the format `int-quantized` of compressed-tensors. Matrices of integers stay unchanged, so
a second run does nothing. Without `--output` the directory itself is changed.
"""

import argparse
import json
import math
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.weights.encodings import encode_int8
from ouzel.backends.openvino.weights.plain_names import plain_name
from ouzel.backends.openvino.weights.safetensors import (
    PLAIN_TYPES,
    Checkpoint,
    find_files,
    to_float32,
)
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.weight_files import SINGLE_FILE

CONFIG_FILE = "config.json"
# prefixes of the tensors' names in a checkpoint of a language model alone
LANGUAGE_MODEL = ("model.", "lm_head.")
HEAD = "lm_head"
FORMAT = "int-quantized"


@dataclass(frozen=True, slots=True)
class StoredTensor:
    dtype: str  # safetensors' name of the type
    elements: NDArray[Any]  # Any: one of many element types


def store_int8(source: Path, target: Path) -> None:
    """Writes the weights and config.json, each in one step, and copies all other files."""
    if find_files(source) != [source / SINGLE_FILE]:
        raise SystemExit(f"{source}: its weights must be in {SINGLE_FILE} alone")
    checkpoint = Checkpoint(source)
    tensors: dict[str, StoredTensor] = {}
    for name in checkpoint.names():
        tensors |= convert_tensor(checkpoint, name)
    config = json.loads((source / CONFIG_FILE).read_text(encoding="utf-8"))
    quantization = quantization_config(tensors)
    if config.setdefault("quantization_config", quantization) != quantization:
        raise SystemExit(f"{source}: its {CONFIG_FILE} says that it is quantised in another way")
    if source != target:
        shutil.copytree(
            source,
            target,
            ignore=shutil.ignore_patterns(SINGLE_FILE, CONFIG_FILE),
            dirs_exist_ok=True,
        )
    replace_file(target / SINGLE_FILE, safetensors_file(tensors))
    replace_file(
        target / CONFIG_FILE, (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode()
    )


def convert_tensor(checkpoint: Checkpoint, name: str) -> dict[str, StoredTensor]:
    """Returns the tensors to store for one tensor: in 8 bits with scales, or unchanged."""
    location = checkpoint.find(name)
    assert location is not None
    elements = checkpoint.read(name, location.shape, location.dtype)
    if not is_compressed(location):
        return {location.name: StoredTensor(location.dtype, elements)}
    parts = encode_int8(to_float32(elements, location.dtype))
    base = location.name.removesuffix(".weight")
    return {
        location.name: StoredTensor("I8", signed(parts["values"])),
        f"{base}.weight_scale": StoredTensor("F32", parts["scales"]),
        f"{base}.weight_zero_point": StoredTensor("I8", signed(parts["zeros"])),
    }


def signed(levels: NDArray[Any]) -> NDArray[np.int8]:  # Any: bytes
    """Moves levels from the range 0 to 255 into the range -128 to 127."""
    return (levels.view(np.uint8) ^ np.uint8(0x80)).view(np.int8)


def is_compressed(location: TensorLocation) -> bool:
    is_matrix = len(location.shape) == 2 and location.name.endswith(".weight")
    return (
        is_matrix
        and location.dtype in PLAIN_TYPES
        and plain_name(location.name).startswith(LANGUAGE_MODEL)
    )


def quantization_config(tensors: dict[str, StoredTensor]) -> dict[str, Any]:  # Any: JSON
    """Returns config.json's entry: all matrices are in 8 bits, except the named ones."""
    is_plain = {
        name.removesuffix(".weight"): tensor.dtype in PLAIN_TYPES
        for name, tensor in tensors.items()
        if name.endswith(".weight") and tensor.elements.ndim == 2
    }
    ignored = [name for name in sorted({HEAD, *is_plain}) if is_plain.get(name, True)]
    weights = {
        "num_bits": 8,
        "type": "int",
        "symmetric": False,
        "strategy": "channel",
        "dynamic": False,
    }
    return {
        "quant_method": "compressed-tensors",
        "format": FORMAT,
        "quantization_status": "compressed",
        "config_groups": {
            "group_0": {"targets": ["Embedding", "Linear"], "format": FORMAT, "weights": weights}
        },
        "ignore": ignored,
    }


def safetensors_file(tensors: dict[str, StoredTensor]) -> bytes:
    """Returns the file's bytes; the widest elements come first, so that all are aligned."""
    in_order = sorted(tensors.items(), key=lambda item: (-item[1].elements.itemsize, item[0]))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # Any: JSON
    position = 0
    for name, tensor in in_order:
        end = position + tensor.elements.nbytes
        header[name] = {
            "dtype": tensor.dtype,
            "shape": tensor.elements.shape,
            "data_offsets": [position, end],
        }
        position = end
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded = encoded.ljust(math.ceil(len(encoded) / 8) * 8)
    data = (np.ascontiguousarray(tensor.elements).tobytes() for _, tensor in in_order)
    return struct.pack("<Q", len(encoded)) + encoded + b"".join(data)


def replace_file(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(content)
    temporary.rename(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--output", type=Path, help="a directory for the result; default: the same")
    options = parser.parse_args()
    target = options.output or options.directory
    before = (options.directory / SINGLE_FILE).stat().st_size
    store_int8(options.directory, target)
    print(
        f"{target}: {before / 1e6:.2f} MB of weights are "
        f"{(target / SINGLE_FILE).stat().st_size / 1e6:.2f} MB now"
    )


if __name__ == "__main__":
    main()
