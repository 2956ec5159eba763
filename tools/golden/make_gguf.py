"""Writes a checkpoint as GGUF, as llama.cpp's convert_hf_to_gguf.py does, with llama.cpp's package gguf. See README.md.

python -m tools.golden.make_gguf DIRECTORY FILE TYPE      (TYPE: BF16, F16, Q8_0, ...)
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes  # noqa: F401  numpy learns bfloat16
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import dequantize, quantize
from safetensors.numpy import load_file

Array = np.ndarray[Any, Any]
Config = dict[str, Any]

TESTS = Path(__file__).parents[2] / "tests"
GOLDEN, CHECKPOINTS = TESTS / "gguf" / "golden", TESTS / "backends" / "golden"

T = GGMLQuantizationType
HALVES: dict[GGMLQuantizationType, tuple[int, ...]] = {  # where blocks have numbers of sixteen bits
    T.Q4_0: (0,),
    T.Q4_1: (0, 2),
    T.Q5_0: (0,),
    T.Q5_1: (0, 2),
    T.Q8_0: (0,),
    T.Q2_K: (80, 82),
    T.Q3_K: (108,),
    T.Q4_K: (0, 2),
    T.Q5_K: (0, 2),
    T.Q6_K: (208,),
    T.IQ4_NL: (0,),
    T.IQ4_XS: (0,),
    T.MXFP4: (),
}
MODELS = {"llama-bias": T.Q8_0, "llama3": T.BF16, "qwen2": T.BF16, "qwen3": T.Q8_0, "qwen3-yarn": T.Q8_0}

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "smollm3": gguf.MODEL_ARCH.SMOLLM3,
}
PERMUTED = {"llama", "smollm3"}  # rows of queries and keys are stored as pairs that turn together


def write_gguf(directory: Path, path: Path, kind: GGMLQuantizationType, *, max_split_bytes: int = 0) -> None:
    config = json.loads((directory / "config.json").read_text())
    architecture = ARCHITECTURES[config["model_type"]]
    writer = GGUFWriter(
        path, gguf.MODEL_ARCH_NAMES[architecture], split_max_size=max_split_bytes, small_first_shard=False
    )
    add_config(writer, config)
    if (directory / "tokenizer.json").is_file():
        add_tokenizer(writer, directory, config)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    for name, values in converted(directory, config):
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert ours is not None, name
        is_plain = values.ndim == 1 or values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]
        stored = GGMLQuantizationType.F32 if is_plain else kind
        writer.add_tensor(ours, quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def converted(directory: Path, config: Config) -> Iterator[tuple[str, Array]]:
    """Gives tensors by transformers' names, changed as llama.cpp stores them."""
    tensors = {}
    for file in sorted(directory.glob("*.safetensors")):
        tensors |= load_file(file)
    for name, stored in tensors.items():
        values = stored.astype(np.float32)
        heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}.get(
            name.split(".")[-2]
        )
        if heads is not None and config["model_type"] in PERMUTED:
            values = permuted(values, heads)
        yield name, values
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        yield "rope_freqs.weight", llama3_factors(config, scaling)


def permuted(values: Array, num_heads: int) -> Array:
    halves = values.reshape(num_heads, 2, values.shape[0] // num_heads // 2, *values.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(values.shape))


def llama3_factors(config: Config, scaling: Config) -> Array:
    """Returns by what each frequency is divided."""
    dims = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    theta = scaling.get("rope_theta") or config["rope_theta"]
    waves = 2 * np.pi * theta ** (np.arange(0, dims, 2) / dims)
    original, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = (original / waves - low) / (high - low)
    blended = 1 / ((1 - smooth) / factor + smooth)
    factors = np.where(waves < original / high, 1, np.where(waves > original / low, factor, blended))
    return factors.astype(np.float32)


def add_config(writer: GGUFWriter, config: Config) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    dims = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(dims)
    writer.add_value_length(dims)
    writer.add_rope_dimension_count(dims)
    writer.add_vocab_size(config["vocab_size"])
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    writer.add_rope_freq_base(scaling.get("rope_theta") or config["rope_theta"])
    if scaling.get("rope_type") in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
    if scaling.get("rope_type") == "yarn":
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])


def add_tokenizer(writer: GGUFWriter, directory: Path, config: Config) -> None:
    """Writes a byte-level tokenizer with the pattern of qwen2."""
    content = json.loads((directory / "tokenizer.json").read_text())
    named = json.loads((directory / "tokenizer_config.json").read_text())
    tokens = {id_: (token, TokenType.NORMAL) for token, id_ in content["model"]["vocab"].items()}
    for added in content["added_tokens"]:
        kind = TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED
        tokens[added["id"]] = (added["content"], kind)
    every = [tokens.get(id_, (f"[PAD{id_}]", TokenType.UNUSED)) for id_ in range(config["vocab_size"])]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([token for token, _ in every])
    writer.add_token_types([kind for _, kind in every])
    writer.add_token_merges([" ".join(merge) for merge in content["model"]["merges"]])
    ids = {token: id_ for id_, (token, _) in enumerate(every)}
    writer.add_eos_token_id(ids[named["eos_token"]])
    writer.add_pad_token_id(ids[named["pad_token"]])
    writer.add_add_bos_token(False)
    writer.add_chat_template((directory / "chat_template.jinja").read_text())


def write_blocks(path: Path) -> None:
    """Writes random blocks of every type that is read, and beside them what the package makes of them.

    Where a type has numbers of sixteen bits, they are set to ordinary ones; of two groups the scale is zero.
    """
    generator = np.random.default_rng(0)
    writer = GGUFWriter(path, "llama")
    values = {}
    for kind, positions in HALVES.items():
        num_values, num_bytes = gguf.GGML_QUANT_SIZES[kind]
        blocks = generator.integers(0, 256, (4, 512 // num_values, num_bytes), np.uint8)
        for position in positions:
            halves = generator.standard_normal((*blocks.shape[:2], 1)).astype(np.float16)
            blocks[..., position : position + 2] = halves.view(np.uint8)
        if positions:
            blocks[0, 0, positions[0] : positions[0] + 2] = 0
        else:
            blocks[..., 0] = generator.integers(110, 140, blocks.shape[:2])
        stored = blocks.reshape(4, -1)
        writer.add_tensor(kind.name, stored, raw_dtype=kind)
        values[kind.name] = dequantize(stored, kind).astype(np.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    np.savez_compressed(path.with_suffix(".npz"), **values)


def main() -> None:
    if arguments := sys.argv[1:]:
        directory, path, kind = arguments
        write_gguf(Path(directory), Path(path), GGMLQuantizationType[kind])
        return
    GOLDEN.mkdir(parents=True, exist_ok=True)
    write_blocks(GOLDEN / "blocks.gguf")
    for name, type_ in MODELS.items():
        write_gguf(CHECKPOINTS / name, GOLDEN / f"{name}.gguf", type_)


if __name__ == "__main__":
    main()
