"""Changes copies of model directories (config.json, names and bytes of tensors), and loads them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from tests.backends.conftest import read_golden
from tests.backends.forward import Driver, relative_error

WEIGHTS = "model.safetensors"
EXACT = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)


def load_copy(directory: Path, engine: EngineConfig = EXACT, **model: object) -> ModelRunner:
    """Loads a model directory, in float32 by default.

    The cache of compressed weights is beside the directory.
    """
    options = {"weights": "f32", "cache_dir": str(directory.parent / "cache"), **model}
    model_config = ModelConfig(model=str(directory), **options)  # type: ignore[arg-type]
    return create_runner(model_config, engine)


def measure_error(runner: ModelRunner) -> float:
    """Returns the relative error of the logits of a copy of the golden checkpoint `llama`."""
    golden = read_golden("llama")
    _, logits = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    return relative_error(logits, golden.logits)


def change_config(directory: Path, **values: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rename_tensors(path: Path, old: bytes, new: bytes) -> None:
    """Replaces `old` by `new` in the header of a safetensors file."""
    header, data = _split(path.read_bytes())
    _write(path, header.replace(old, new), data)


def add_tensor(path: Path, name: str) -> None:
    """Adds a tensor with a single zero to a safetensors file."""
    header, data = _split(path.read_bytes())
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
    _write(path, json.dumps(json.loads(header) | {name: entry}).encode(), data + bytes(4))


def join_tensors(path: Path, names: Sequence[str], joined: str) -> None:
    """Replaces matrices of a safetensors file by one matrix that has them below each other."""
    entries, contents = read_tensors(path)
    shapes = [entries[name]["shape"] for name in names]
    entries[joined] = entries[names[0]] | {"shape": [sum(rows for rows, _ in shapes), shapes[0][1]]}
    contents[joined] = b"".join(contents[name] for name in names)
    for name in names:
        del entries[name], contents[name]
    write_tensors(path, entries, contents)


def repeat_tensors(path: Path, parts: Sequence[str]) -> None:
    """Repeats the rows of the tensors of a safetensors file whose names have one of the parts."""
    entries, contents = read_tensors(path)
    for name in contents:
        if any(part in name for part in parts):
            entries[name]["shape"][0] *= 2
            contents[name] *= 2
    write_tensors(path, entries, contents)


def transpose_tensors(path: Path, parts: Sequence[str]) -> None:
    """Swaps the last two dimensions of the bfloat16 tensors whose names have one of the parts."""
    entries, contents = read_tensors(path)
    for name in contents:
        if any(part in name for part in parts):
            values = np.frombuffer(contents[name], np.uint16).reshape(entries[name]["shape"])
            turned = np.ascontiguousarray(values.swapaxes(-1, -2))
            entries[name]["shape"], contents[name] = [*turned.shape], turned.tobytes()
    write_tensors(path, entries, contents)


def fill_tensors(path: Path, value: int) -> None:
    """Sets all bytes of all tensors of a safetensors file to `value`."""
    header, data = _split(path.read_bytes())
    _write(path, header, bytes([value]) * len(data))


def flip_blocks(path: Path, number: int) -> None:
    """Inverts the bits of `number` blocks of 64 bytes, spread over the file."""
    content = np.fromfile(path, np.uint8)
    starts = np.linspace(0, len(content) - 64, number).astype(int)
    content[starts[:, None] + np.arange(64)] ^= 255
    content.tofile(path)


def truncate(path: Path, num_bytes: int) -> None:
    path.write_bytes(path.read_bytes()[:num_bytes])


Entries = dict[str, dict[str, Any]]  # Any: types, shapes and places, as the header has them


def read_tensors(path: Path) -> tuple[Entries, dict[str, bytes]]:
    """Returns the header of a safetensors file, and the bytes of each tensor."""
    header, data = _split(path.read_bytes())
    entries = json.loads(header)
    contents = {
        name: data[slice(*entry["data_offsets"])]
        for name, entry in entries.items()
        if name != "__metadata__"
    }
    return entries, contents


def write_tensors(path: Path, entries: Entries, contents: dict[str, bytes]) -> None:
    end = 0
    for name, content in contents.items():
        entries[name]["data_offsets"] = [end, end := end + len(content)]
    _write(path, json.dumps(entries).encode(), b"".join(contents.values()))


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Returns the header and the data of a safetensors file."""
    begin = 8 + int.from_bytes(content[:8], "little")
    return content[8:begin], content[begin:]


def _write(path: Path, header: bytes, data: bytes) -> None:
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)


def with_config(directory: Path, name: str, left_out: tuple[str, ...], **changes: object) -> Path:
    """Writes a checkpoint with the golden tensors and another config.json."""
    golden = read_golden(name).directory
    config: dict[str, Any] = json.loads((golden / "config.json").read_text())  # Any: JSON
    assert set(left_out) <= set(config)
    config = {key: value for key, value in config.items() if key not in left_out} | changes
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").symlink_to(golden / "model.safetensors")
    return directory
