"""Writes a random, sharded checkpoint for any supported config.json.

usage: uv run python -m benchmarks.checkpoint CONFIG_JSON OUT_DIR [--mtp] [--shard-gib 1]
           [--set num_hidden_layers=4 ...]

The family's own graph names the tensors, so every family that Ouzel serves can be written. Matrices
are normal with a deviation of one over the root of their columns, vectors are normal around one;
all are bf16. The program holds a few MiB in memory at most. It copies the files beside CONFIG_JSON:
with the files of a tokenizer the directory can be served.
"""

import argparse
import json
import math
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.make_checkpoint import bfloat16_bytes
from ouzel.backends.openvino.checkpoint_graph import build_model
from ouzel.backends.openvino.graph.prediction import QWEN_NAMES, make_deepseek_names
from ouzel.backends.openvino.models import family
from ouzel.backends.openvino.vision import vision_family
from ouzel.backends.openvino.weights.encodings import Encoding, Parts
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.source import StoredForm, Tensor
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.checkpoint.weight_files import INDEX_FILE
from ouzel.config.weights import read_weights

Shapes = dict[str, tuple[int, ...]]
CHUNK_ELEMENTS = 2**20  # number of random numbers made at a time


class AnyTensors:
    """A source of tensors that has every tensor, and records the names and shapes."""

    def __init__(self, named: Iterable[str] = ()) -> None:
        self.shapes: Shapes = {}
        self._named = tuple(named)

    def names(self) -> Iterable[str]:
        """Returns the recorded names, and the names that a family looks for before it asks."""
        return (*self._named, *self.shapes)

    def stored_encoding(self, tensor: Tensor) -> Encoding | None:
        self.shapes[tensor.name] = tensor.shape
        return None

    def stored_form(self, tensor: Tensor) -> StoredForm | None:
        return None

    def rows(self, tensor: Tensor) -> Iterator[NDArray[np.float32]]:
        raise AssertionError(f"{tensor.name} is only measured")

    def parts(self, tensor: Tensor) -> Iterator[Parts]:
        raise AssertionError(f"{tensor.name} is only measured")


def list_tensors(directory: Path, *, predicts: bool = False) -> Shapes:
    """Returns the names and shapes of a model's tensors, in the order of its layers."""
    config = read_hf_config(directory)
    text, vision = config.text_model(), vision_family(config)
    named = (QWEN_NAMES, make_deepseek_names(text.size("num_hidden_layers"))) if predicts else ()
    build = family(text.model_type)
    tensors = AnyTensors(f"{names.projection}.weight" for names in named)
    build_model(
        config, build, vision, MeasuredWeights(tensors), read_weights("bf16"), predicts=predicts
    )
    return tensors.shapes


def shards(shapes: Shapes, shard_bytes: int) -> list[Shapes]:
    """Divides the tensors into files of at most `shard_bytes` bytes, or of one tensor."""
    found: list[Shapes] = [{}]
    room = shard_bytes
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        if found[-1] and size > room:
            found.append({})
            room = shard_bytes
        found[-1][name] = shape
        room -= size
    return found


def write_shard(path: Path, shapes: Shapes, rng: np.random.Generator) -> None:
    """Writes a safetensors file: u64 length of the header, the header as JSON, the tensors."""
    ends = np.cumsum([0, *(2 * math.prod(shape) for shape in shapes.values())]).tolist()
    header = {
        name: {"dtype": "BF16", "shape": shape, "data_offsets": offsets}
        for (name, shape), offsets in zip(shapes.items(), pairwise(ends), strict=True)
    }
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for shape in shapes.values():
            for chunk in random_chunks(shape, rng):
                file.write(chunk)


def random_chunks(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[bytes]:
    count = math.prod(shape)
    mean, deviation = (0.0, shape[-1] ** -0.5) if len(shape) > 1 else (1.0, 0.1)
    for start in range(0, count, CHUNK_ELEMENTS):
        values = rng.standard_normal(min(CHUNK_ELEMENTS, count - start), np.float32)
        yield bfloat16_bytes(values * np.float32(deviation) + np.float32(mean))


def write_checkpoint(
    config: Path,
    out: Path,
    shard_bytes: int,
    changes: dict[str, object],
    renamed: Callable[[str], str] = str,
    *,
    predicts: bool = False,
) -> int:
    """Writes the checkpoint, and returns the number of parameters.

    Tensors have Ouzel's names for them, or the names that `renamed` makes of them: a peer may know
    other names.
    """
    out.mkdir(parents=True, exist_ok=True)
    for path in config.parent.iterdir():
        if path.suffix in {".json", ".jinja"} and not path.name.endswith(".index.json"):
            shutil.copy(path, out)
    (out / "config.json").write_text(
        json.dumps(json.loads(config.read_text()) | changes, indent=2) + "\n"
    )
    shapes = {renamed(name): shape for name, shape in list_tensors(out, predicts=predicts).items()}
    files = shards(shapes, shard_bytes)
    rng = np.random.default_rng(0)
    weight_map: dict[str, str] = {}
    for number, each in enumerate(files, 1):
        name = f"model-{number:05}-of-{len(files):05}.safetensors"
        write_shard(out / name, each, rng)
        weight_map |= dict.fromkeys(each, name)
    (out / INDEX_FILE).write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map}, indent=2) + "\n"
    )
    return sum(map(math.prod, shapes.values()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, help="a config.json")
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "--mtp", action="store_true", help="with a layer that predicts further tokens"
    )
    parser.add_argument("--shard-gib", type=float, default=1.0)
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="KEY=JSON", help="values of config.json to change"
    )
    arguments = parser.parse_args()
    changes = {
        key: json.loads(value) for key, _, value in (each.partition("=") for each in arguments.set)
    }
    shard_bytes = int(arguments.shard_gib * 2**30)
    count = write_checkpoint(
        arguments.config, arguments.out, shard_bytes, changes, predicts=arguments.mtp
    )
    print(f"{arguments.out}: {count / 1e9:.2f} billion parameters")


if __name__ == "__main__":
    main()
