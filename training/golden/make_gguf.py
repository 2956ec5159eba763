"""Writes a checkpoint as GGUF, as llama.cpp's convert_hf_to_gguf.py does, with llama.cpp's package gguf. See README.md.

python -m training.golden.make_gguf DIRECTORY FILE TYPE      (TYPE: BF16, F16, Q8_0, ...)
"""

import json
import math
import re
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
    T.IQ1_S: (0,),
    T.IQ1_M: (),
    T.IQ2_XXS: (0,),
    T.IQ2_XS: (0,),
    T.IQ2_S: (0,),
    T.IQ3_XXS: (0,),
    T.IQ3_S: (0,),
    T.TQ1_0: (52,),
    T.TQ2_0: (64,),
}
MODELS = {
    "gemma2": T.BF16,
    "gemma3": T.BF16,
    "gpt-oss": T.Q8_0,
    "granite": T.BF16,
    "lfm2": T.BF16,
    "lfm2-moe": T.BF16,
    "llama-bias": T.Q8_0,
    "llama3": T.BF16,
    "phi3": T.BF16,
    "qwen2": T.BF16,
    "qwen3": T.Q8_0,
    "qwen3-yarn": T.Q8_0,
}

ARCHITECTURES = {
    "llama": gguf.MODEL_ARCH.LLAMA,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "smollm3": gguf.MODEL_ARCH.SMOLLM3,
    "phi3": gguf.MODEL_ARCH.PHI3,
    "granite": gguf.MODEL_ARCH.GRANITE,
    "gemma2": gguf.MODEL_ARCH.GEMMA2,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
    "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
    "gpt_oss": gguf.MODEL_ARCH.GPT_OSS,
    "lfm2": gguf.MODEL_ARCH.LFM2,
    "lfm2_moe": gguf.MODEL_ARCH.LFM2MOE,
}
_EXPERTS = {"add_expert_count": "num_local_experts", "add_expert_used_count": "num_experts_per_tok"}
FURTHER = {  # methods of the writer, and the keys of config.json whose values they take
    "phi3": {"add_sliding_window": "sliding_window"},
    "gemma2": {
        "add_sliding_window": "sliding_window",
        "add_attn_logit_softcapping": "attn_logit_softcapping",
        "add_final_logit_softcapping": "final_logit_softcapping",
    },
    "gemma3_text": {"add_sliding_window": "sliding_window"},
    "granite": {
        "add_attention_scale": "attention_multiplier",
        "add_embedding_scale": "embedding_multiplier",
        "add_residual_scale": "residual_multiplier",
        "add_logit_scale": "logits_scaling",
    },
    "qwen3_moe": _EXPERTS | {"add_expert_feed_forward_length": "moe_intermediate_size"},
    "gpt_oss": _EXPERTS
    | {
        "add_expert_feed_forward_length": "intermediate_size",
        "add_sliding_window": "sliding_window",
    },
    "lfm2": {"add_shortconv_l_cache": "conv_L_cache"},
    "lfm2_moe": {
        "add_shortconv_l_cache": "conv_L_cache",
        "add_expert_count": "num_experts",
        "add_expert_used_count": "num_experts_per_tok",
        "add_expert_feed_forward_length": "moe_intermediate_size",
        "add_leading_dense_block_count": "num_dense_layers",
    },
}
PERMUTED = {
    "llama",
    "smollm3",
    "granite",
}  # rows of queries and keys are stored as pairs that turn together


def write_gguf(
    directory: Path, path: Path, kind: GGMLQuantizationType, *, max_split_bytes: int = 0
) -> None:
    config = read_config(directory)
    architecture = ARCHITECTURES[config["model_type"]]
    writer = GGUFWriter(
        path,
        gguf.MODEL_ARCH_NAMES[architecture],
        split_max_size=max_split_bytes,
        small_first_shard=False,
    )
    add_config(writer, config)
    if (directory / "tokenizer.json").is_file():
        add_tokenizer(writer, directory, config)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    for name, values in converted(directory, config):
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert ours is not None, name
        is_plain = values.ndim == 1 or name.endswith((".bias", "conv.weight"))
        is_plain = is_plain or values.shape[-1] % gguf.GGML_QUANT_SIZES[kind][0]
        stored = GGMLQuantizationType.F32 if is_plain else kind
        writer.add_tensor(ours, quantize(values, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_config(directory: Path) -> Config:
    config: Config = json.loads((directory / "config.json").read_text())
    if config["model_type"] == "lfm2":  # it is cut down from what is written there
        config["intermediate_size"] = read_tensors(directory)[
            "model.layers.0.feed_forward.w1.weight"
        ].shape[0]
    return config


def read_tensors(directory: Path) -> dict[str, Array]:
    tensors: dict[str, Array] = {}
    for file in sorted(directory.glob("*.safetensors")):
        tensors |= load_file(file)
    return tensors


def converted(directory: Path, config: Config) -> Iterator[tuple[str, Array]]:
    """Gives tensors by transformers' names, changed as llama.cpp stores them."""
    for name, stored in stacked(read_tensors(directory)).items():
        values = stored.astype(np.float32)
        heads = {
            "q_proj": config["num_attention_heads"],
            "k_proj": config["num_key_value_heads"],
        }.get(name.split(".")[-2])
        if heads is not None and config["model_type"] in PERMUTED:
            values = permuted(values, heads)
        if config["model_type"] in ("gemma2", "gemma3_text") and name.endswith("norm.weight"):
            values = values + 1
        if name.endswith("conv.conv.weight"):
            values = values.squeeze(1)
        yield from (
            alternating(name, values) if "experts.gate_up_proj" in name else [turned(name, values)]
        )
    yield from rope_factors(config)


def stacked(tensors: dict[str, Array]) -> dict[str, Array]:
    """Makes one tensor of those that each expert has."""
    experts: dict[str, dict[int, Array]] = {}
    others = {}
    for name, values in tensors.items():
        if found := re.fullmatch(r"(.+\.experts\.)(\d+)\.(.+)", name):
            experts.setdefault(found[1] + found[3], {})[int(found[2])] = values
        else:
            others[name] = values
    return others | {
        name: np.stack([each[i] for i in range(len(each))]) for name, each in experts.items()
    }


def alternating(name: str, values: Array) -> Iterator[tuple[str, Array]]:
    """Parts the columns of gpt-oss's experts, and makes rows of them."""
    end = "bias" if name.endswith("_bias") else "weight"
    for first, part in enumerate(("gate_proj", "up_proj")):
        own = values[..., first::2]
        columns = own if end == "bias" else own.swapaxes(1, 2)
        yield f"{name.rpartition('.')[0]}.{part}.{end}", np.ascontiguousarray(columns)


def turned(name: str, values: Array) -> tuple[str, Array]:
    if name.endswith("experts.down_proj"):
        return name + ".weight", np.ascontiguousarray(values.swapaxes(1, 2))
    name = name.replace("self_attn.sinks", "self_attn.sinks.weight").replace(
        "expert_bias", "expert_bias.bias"
    )
    for theirs, ours in {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}.items():
        name = name.replace(f"experts.{theirs}.", f"experts.{ours}.")
    return name.replace("down_proj_bias", "down_proj.bias"), values


def rope_factors(config: Config) -> Iterator[tuple[str, Array]]:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        yield "rope_freqs.weight", llama3_factors(config, scaling)
    if scaling.get("rope_type") == "longrope":
        for kind in ("long", "short"):
            yield f"rope_factors_{kind}.weight", np.array(scaling[f"{kind}_factor"], np.float32)


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
    factors = np.where(
        waves < original / high, 1, np.where(waves > original / low, factor, blended)
    )
    return factors.astype(np.float32)


def add_config(writer: GGUFWriter, config: Config) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_rms_eps(config.get("norm_eps") or config["rms_norm_eps"])
    dims = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    writer.add_key_length(dims)
    writer.add_value_length(dims)
    writer.add_vocab_size(config["vocab_size"])
    heads, kinds = config["num_key_value_heads"], config.get("layer_types") or []
    writer.add_head_count_kv(
        [heads * (kind != "conv") for kind in kinds] if "conv" in kinds else heads
    )
    add_rope(writer, config, dims)
    for method, key in FURTHER.get(config["model_type"], {}).items():
        getattr(writer, method)(config[key] or 0)


def add_rope(writer: GGUFWriter, config: Config, dims: int) -> None:
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    scaling = scaling.get("full_attention") or scaling
    share = scaling.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1
    writer.add_rope_dimension_count(int(dims * share))
    writer.add_rope_freq_base(scaling.get("rope_theta") or config["rope_theta"])
    original = config.get("original_max_position_embeddings") or scaling.get(
        "original_max_position_embeddings"
    )
    if scaling.get("rope_type") in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(scaling["rope_type"]))
        writer.add_rope_scaling_factor(scaling["factor"])
    if scaling.get("rope_type") == "yarn":
        writer.add_rope_scaling_orig_ctx_len(original)
    if scaling.get("rope_type") == "longrope":
        factor = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(
            math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
        )


def add_tokenizer(writer: GGUFWriter, directory: Path, config: Config) -> None:
    """Writes a byte-level tokenizer with the pattern of qwen2."""
    content = json.loads((directory / "tokenizer.json").read_text())
    named = json.loads((directory / "tokenizer_config.json").read_text())
    tokens = {id_: (token, TokenType.NORMAL) for token, id_ in content["model"]["vocab"].items()}
    for added in content["added_tokens"]:
        kind = TokenType.CONTROL if added["special"] else TokenType.USER_DEFINED
        tokens[added["id"]] = (added["content"], kind)
    every = [
        tokens.get(id_, (f"[PAD{id_}]", TokenType.UNUSED)) for id_ in range(config["vocab_size"])
    ]
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
        elif kind is T.IQ1_M:  # the highest bits of its f16 are in the last byte
            blocks[..., 55] = blocks[..., 55] & 15 | 0x30
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
