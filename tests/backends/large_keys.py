"""Writes a tiny checkpoint with a few very large key channels, and a tokenizer of bytes."""

import json
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.backends import GOLDEN

NUM_HEADS, NUM_KV_HEADS, HEAD_DIM, NUM_LAYERS = 4, 2, 16, 2
LARGE_PAIR = (3, 3 + HEAD_DIM // 2)  # the enlarged pair of rotary channels of each head
MAX_POSITIONS = 4096
Tensors = dict[str, NDArray[np.uint16]]


def make_checkpoint(directory: Path, *, factor: float, attention: float = 8.0) -> Path:
    """Writes the golden checkpoint of qwen2 with enlarged channels of keys.

    Multiplies one pair of channels of each key by `factor`, a power of two, and divides the same
    pair of the queries: without rounding, the model computes the same. Multiplies all queries by
    `attention`, so that logits depend on the attended tokens.
    """
    shutil.copytree(GOLDEN / "qwen2", directory)
    path = directory / "model.safetensors"
    content = bytearray(path.read_bytes())
    header_end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:header_end])
    for layer in range(NUM_LAYERS):
        for name, num_heads in (("q_proj", NUM_HEADS), ("k_proj", NUM_KV_HEADS)):
            for kind in ("weight", "bias"):
                begin, end = header[f"model.layers.{layer}.self_attn.{name}.{kind}"]["data_offsets"]
                part = slice(header_end + begin, header_end + end)
                values = widen(np.frombuffer(bytes(content[part]), np.uint16)).reshape(
                    num_heads, HEAD_DIM, -1
                )
                values *= attention if name == "q_proj" else 1.0
                values[:, LARGE_PAIR] *= factor if name == "k_proj" else 1 / factor
                content[part] = narrow(values).tobytes()
    path.write_bytes(content)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(
        json.dumps(config | {"max_position_embeddings": MAX_POSITIONS})
    )
    write_tokenizer(directory)
    return directory


def write_tokenizer(directory: Path) -> None:
    """Writes a tokenizer with one token for each byte."""
    vocabulary = {
        character: index
        for index, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    }
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(directory / "tokenizer.json"))


def widen(values: NDArray[np.uint16]) -> NDArray[np.float32]:
    return (values.astype(np.uint32) << 16).view(np.float32)


def narrow(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Stores values in bf16, which must hold them exactly."""
    return (values.reshape(-1).view(np.uint32) >> 16).astype(np.uint16)
