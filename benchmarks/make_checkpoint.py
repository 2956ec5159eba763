"""Writes a random Hugging Face checkpoint of a given shape, for benchmarks without a download.

usage: uv run benchmarks/make_checkpoint.py --shape qwen3-0.6b OUT_DIR

The directory gets config.json, model.safetensors (bf16), tokenizer.json, tokenizer_config.json and
generation_config.json: enough for `ouzel serve OUT_DIR`. Matrices are normal(0, 0.02), norms are
one. The same shape and seed give the same bytes. The tokenizer is byte-level without merges; its
other entries are fillers.
"""

import argparse
import json
import math
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NUM_BYTE_TOKENS = 256
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHUNK_ELEMENTS = 1 << 24  # number of random numbers made at a time
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


# (name, shape, random numbers) -> the tensor's bf16 bytes, piece by piece
Chunks = Callable[[str, tuple[int, ...], np.random.Generator], Iterator[bytes]]


@dataclass(frozen=True)
class ModelShape:
    """The numbers of a Qwen3 configuration that decide the model's size."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_positions: int
    tied: bool = True


SHAPES = {
    "tiny": ModelShape(64, 128, 2, 4, 2, 16, 512, 4096),
    "small": ModelShape(512, 1536, 8, 8, 4, 64, 8192, 32768),
    "qwen3-0.6b": ModelShape(1024, 3072, 28, 16, 8, 128, 151936, 40960),
    "qwen3-1.7b": ModelShape(2048, 6144, 28, 16, 8, 128, 151936, 40960),
    "qwen3-4b": ModelShape(2560, 9728, 36, 32, 8, 128, 151936, 40960),
}


def hf_config(shape: ModelShape) -> dict[str, object]:
    """Returns config.json as the published Qwen3 checkpoints have it."""
    first_special = shape.vocab_size - len(SPECIAL_TOKENS)
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "bos_token_id": first_special,
        "eos_token_id": first_special + 2,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_positions,
        "max_window_layers": shape.num_layers,
        "num_attention_heads": shape.num_heads,
        "num_hidden_layers": shape.num_layers,
        "num_key_value_heads": shape.num_kv_heads,
        "rms_norm_eps": 1e-06,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "tie_word_embeddings": shape.tied,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "use_sliding_window": False,
        "vocab_size": shape.vocab_size,
    }


def tensor_shapes(shape: ModelShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields names and shapes in the order of the file."""
    hidden, head_dim = shape.hidden_size, shape.head_dim
    yield "model.embed_tokens.weight", (shape.vocab_size, hidden)
    for index in range(shape.num_layers):
        layer = f"model.layers.{index}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "self_attn.q_proj.weight", (shape.num_heads * head_dim, hidden)
        yield layer + "self_attn.k_proj.weight", (shape.num_kv_heads * head_dim, hidden)
        yield layer + "self_attn.v_proj.weight", (shape.num_kv_heads * head_dim, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, shape.num_heads * head_dim)
        yield layer + "self_attn.q_norm.weight", (head_dim,)
        yield layer + "self_attn.k_norm.weight", (head_dim,)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "mlp.gate_proj.weight", (shape.intermediate_size, hidden)
        yield layer + "mlp.up_proj.weight", (shape.intermediate_size, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, shape.intermediate_size)
    yield "model.norm.weight", (hidden,)
    if not shape.tied:
        yield "lm_head.weight", (shape.vocab_size, hidden)


def bfloat16_bytes(values: NDArray[np.float32]) -> bytes:
    """Rounds to nearest even, as the usual frameworks do; the values here are finite."""
    bits = values.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16).tobytes()


def random_chunks(
    name: str, tensor_shape: tuple[int, ...], rng: np.random.Generator
) -> Iterator[bytes]:
    num_elements = math.prod(tensor_shape)
    if name.endswith("norm.weight"):
        yield bfloat16_bytes(np.ones(num_elements, np.float32))
        return
    for start in range(0, num_elements, CHUNK_ELEMENTS):
        count = min(CHUNK_ELEMENTS, num_elements - start)
        yield bfloat16_bytes(rng.standard_normal(count, np.float32) * np.float32(0.02))


def write_safetensors(
    path: Path, shape: ModelShape, seed: int, chunks: Chunks = random_chunks
) -> None:
    """Writes the file: u64 length of the header, the header as JSON, the tensors."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor_shape in tensor_shapes(shape):
        begin, end = end, end + 2 * math.prod(tensor_shape)
        header[name] = {"dtype": "BF16", "shape": tensor_shape, "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    rng = np.random.default_rng(seed)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for name, tensor_shape in tensor_shapes(shape):
            for chunk in chunks(name, tensor_shape, rng):
                file.write(chunk)


def byte_alphabet() -> list[str]:
    """Returns the characters that stand for the bytes 0-255 in byte-level tokenizers."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    stand_in = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(NUM_BYTE_TOKENS) if byte not in stand_in]
    stand_in |= {byte: chr(NUM_BYTE_TOKENS + index) for index, byte in enumerate(others)}
    return [stand_in[byte] for byte in range(NUM_BYTE_TOKENS)]


def tokenizer_json(vocab_size: int) -> dict[str, object]:
    first_special = vocab_size - len(SPECIAL_TOKENS)
    vocab = {character: token_id for token_id, character in enumerate(byte_alphabet())}
    vocab |= {f"w{token_id}": token_id for token_id in range(NUM_BYTE_TOKENS, first_special)}
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }
    added = [
        {"id": first_special + i, "content": token, **flags}
        for i, token in enumerate(SPECIAL_TOKENS)
    ]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": vocab,
            "merges": [],
        },
    }


def write_checkpoint(
    directory: Path, shape: ModelShape, seed: int, chunks: Chunks = random_chunks
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    config = hf_config(shape)
    documents: dict[str, dict[str, object]] = {
        "config.json": config,
        "generation_config.json": {key: config[key] for key in ("bos_token_id", "eos_token_id")},
        "tokenizer.json": tokenizer_json(shape.vocab_size),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": shape.max_positions,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, document in documents.items():
        (directory / name).write_text(
            json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    write_safetensors(directory / "model.safetensors", shape, seed, chunks)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a random checkpoint.")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3-0.6b")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    started = time.perf_counter()
    write_checkpoint(arguments.directory, SHAPES[arguments.shape], arguments.seed)
    print(f"{arguments.directory}: {arguments.shape}, {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
