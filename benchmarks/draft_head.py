"""Writes a random EAGLE-3 head for a model directory, with the sizes of published heads.

usage: uv run python -m benchmarks.draft_head MODEL OUT_DIR [--draft-vocab 32000]

The layer has the hidden size, the feed-forward size and the heads of the model, as heads mostly do.
The head proposes the first `--draft-vocab` tokens.
"""

import argparse
import json
import struct
from pathlib import Path

import numpy as np

from benchmarks.make_checkpoint import bfloat16_bytes
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.weight_files import SINGLE_FILE

_LAYER = "midlayer."


def make_config(model: HfConfig, draft_vocab: int) -> dict[str, object]:
    size, num_heads = model.size("hidden_size"), model.size("num_attention_heads")
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": size,
        "intermediate_size": model.size("intermediate_size"),
        "num_attention_heads": num_heads,
        "num_key_value_heads": model.size("num_key_value_heads", num_heads),
        "head_dim": model.size("head_dim", size // num_heads),
        "num_hidden_layers": 1,
        "rms_norm_eps": model.number("rms_norm_eps", 1e-6),
        "vocab_size": model.size("vocab_size"),
        "draft_vocab_size": min(draft_vocab, model.size("vocab_size")),
    }


def list_shapes(config: HfConfig) -> dict[str, tuple[int, ...]]:
    size, inner = config.size("hidden_size"), config.size("intermediate_size")
    head_dim = config.size("head_dim")
    rows, kv_rows = (
        head_dim * config.size(key) for key in ("num_attention_heads", "num_key_value_heads")
    )
    matrices = {
        "fc": (size, 3 * size),
        _LAYER + "self_attn.q_proj": (rows, 2 * size),
        _LAYER + "self_attn.k_proj": (kv_rows, 2 * size),
        _LAYER + "self_attn.v_proj": (kv_rows, 2 * size),
        _LAYER + "self_attn.o_proj": (size, rows),
        _LAYER + "mlp.gate_proj": (inner, size),
        _LAYER + "mlp.up_proj": (inner, size),
        _LAYER + "mlp.down_proj": (size, inner),
        "lm_head": (config.size("draft_vocab_size"), size),
    }
    norms = ("hidden_norm", "input_layernorm", "post_attention_layernorm")
    vectors = dict.fromkeys(["norm", *(_LAYER + name for name in norms)], (size,))
    return {f"{name}.weight": shape for name, shape in {**matrices, **vectors}.items()}


def write_head(model: Path, out: Path, draft_vocab: int) -> None:
    config = make_config(read_hf_config(model).text_model(), draft_vocab)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    random, header, data = np.random.default_rng(0), {}, []
    begin = 0
    for name, shape in list_shapes(HfConfig(config)).items():
        values = random.standard_normal(shape, np.float32) * np.float32(shape[-1] ** -0.5)
        data.append(bfloat16_bytes(values + np.float32(len(shape) == 1)))
        header[name] = {
            "dtype": "BF16",
            "shape": shape,
            "data_offsets": (begin, begin + len(data[-1])),
        }
        begin += len(data[-1])
    ids = np.zeros(HfConfig(config).size("draft_vocab_size"), np.int64)  # the ids are the same
    header["d2t"] = {
        "dtype": "I64",
        "shape": ids.shape,
        "data_offsets": (begin, begin + ids.nbytes),
    }
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    with (out / SINGLE_FILE).open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for piece in [*data, ids.tobytes()]:
            file.write(piece)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a random EAGLE-3 head.")
    parser.add_argument("model", type=Path, help="the model's directory")
    parser.add_argument("out", type=Path)
    parser.add_argument("--draft-vocab", type=int, default=32_000)
    options = parser.parse_args()
    write_head(options.model, options.out, options.draft_vocab)


if __name__ == "__main__":
    main()
