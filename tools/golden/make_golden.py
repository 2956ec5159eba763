"""Writes tests/backends/golden/: tiny random checkpoints and what transformers makes of them. See README.md."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden"
PROMPT_LENGTH = 40
GREEDY_LENGTH = 64
SMALLEST_GAP = 0.02  # between the best and the second logit, in standard deviations of the logits

BASE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def rope(rope_type: str = "default", theta: float = 10000.0, **fields: object) -> dict[str, object]:
    return {"rope_type": rope_type, "rope_theta": theta, **fields}


LLAMA3 = rope(
    "llama3",
    500000.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
YARN = rope("yarn", 1000000.0, factor=4.0, original_max_position_embeddings=32)

# name -> transformers configuration, dtype of the file, largest shard, write rope the way transformers 4 did
CASES: dict[str, tuple[dict[str, Any], torch.dtype, str, bool]] = {
    "llama": ({"model_type": "llama", "rope_parameters": rope()}, torch.float32, "1GB", False),
    "llama3": (
        {"model_type": "llama", "rope_parameters": LLAMA3, "tie_word_embeddings": True, "num_hidden_layers": 3},
        torch.bfloat16,
        "1GB",
        True,
    ),
    "llama-bias": (
        {
            "model_type": "llama",
            "rope_parameters": rope("linear", factor=2.0),
            "attention_bias": True,
            "mlp_bias": True,
            "num_key_value_heads": 4,
        },
        torch.float16,
        "1GB",
        False,
    ),
    "mistral": (
        {"model_type": "mistral", "rope_parameters": rope(), "sliding_window": 16, "head_dim": 32},
        torch.bfloat16,
        "1GB",
        False,
    ),
    "qwen2": (
        {"model_type": "qwen2", "rope_parameters": rope(theta=1000000.0), "tie_word_embeddings": True},
        torch.bfloat16,
        "1GB",
        True,
    ),
    "qwen2-window": (
        {
            "model_type": "qwen2",
            "rope_parameters": rope(theta=1000000.0),
            "use_sliding_window": True,
            "sliding_window": 12,
            "max_window_layers": 1,
        },
        torch.bfloat16,
        "1GB",
        False,
    ),
    "qwen3": (
        {
            "model_type": "qwen3",
            "rope_parameters": rope(theta=1000000.0),
            "head_dim": 32,
            "tie_word_embeddings": True,
            "num_hidden_layers": 3,
        },
        torch.bfloat16,
        "200KB",
        True,
    ),
    "qwen3-yarn": (
        {"model_type": "qwen3", "rope_parameters": YARN, "head_dim": 16, "max_position_embeddings": 128},
        torch.bfloat16,
        "1GB",
        False,
    ),
    "smollm3": (
        {
            "model_type": "smollm3",
            "rope_parameters": rope(theta=5000000.0),
            "no_rope_layer_interval": 2,
            "num_hidden_layers": 3,
            "tie_word_embeddings": True,
        },
        torch.bfloat16,
        "1GB",
        True,
    ),
}

ROPE_CASES: list[dict[str, Any]] = [
    {"head_dim": 128, "max_position_embeddings": 40960, "rope_parameters": rope(theta=1000000.0)},
    {"head_dim": 64, "max_position_embeddings": 8192, "rope_parameters": rope("linear", factor=4.0)},
    {"head_dim": 64, "max_position_embeddings": 8192, "rope_parameters": rope("dynamic", factor=2.0)},
    {
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "rope_parameters": {**LLAMA3, "factor": 32.0, "original_max_position_embeddings": 8192},
    },
    {
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "rope_parameters": rope("yarn", 1000000.0, factor=4.0, original_max_position_embeddings=32768),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 16384,
        "rope_parameters": rope(
            "yarn",
            10000.0,
            factor=8.0,
            original_max_position_embeddings=2048,
            beta_fast=16.0,
            beta_slow=2.0,
            mscale=0.7,
            mscale_all_dim=1.1,
            truncate=False,
        ),
    },
    {
        "head_dim": 64,
        "max_position_embeddings": 16384,
        "rope_parameters": rope(
            "yarn", 10000.0, factor=8.0, original_max_position_embeddings=2048, attention_factor=1.3
        ),
    },
]


def random_model(settings: dict[str, Any], dtype: torch.dtype, seed: int) -> Any:
    """Weights large enough that attention is far from uniform, norms and biases far from neutral."""
    config = AutoConfig.for_model(**{**BASE, **settings})
    config._attn_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config).float().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in name:
                parameter.copy_(1 + 0.2 * noise)
            elif name.endswith("bias"):
                parameter.copy_(0.3 * noise)
            else:
                parameter.copy_(noise * (1.5 / parameter.shape[1] ** 0.5))
            parameter.copy_(parameter.to(dtype).float())
    return model


def golden_outputs(model: Any, seed: int) -> tuple[dict[str, np.ndarray[Any, Any]], float]:
    """The arrays of golden.npz, and the smallest gap in standard deviations."""
    vocab_size = model.config.vocab_size
    token_ids = np.random.default_rng(seed).integers(0, vocab_size, PROMPT_LENGTH).tolist()
    greedy: list[int] = []
    smallest_gap = float("inf")
    with torch.no_grad():
        logits = prompt_logits = model(torch.tensor([token_ids]), use_cache=False).logits[0]
        for _ in range(GREEDY_LENGTH):
            best = torch.topk(logits[-1], 2)
            smallest_gap = min(smallest_gap, float((best.values[0] - best.values[1]) / logits[-1].std()))
            greedy.append(int(best.indices[0]))
            logits = model(torch.tensor([token_ids + greedy]), use_cache=False).logits[0]
    rotary = model.model.rotary_emb
    outputs = {
        "prompt": np.array(token_ids, np.int64),
        "logits": prompt_logits.numpy().astype(np.float32),
        "greedy": np.array(greedy, np.int64),
        "inverse_frequencies": rotary.inv_freq.numpy().astype(np.float32),
        "attention_scaling": np.float32(rotary.attention_scaling),
    }
    return outputs, smallest_gap


def older_rope_keys(path: Path) -> None:
    """Rewrites config.json as transformers 4 wrote it."""
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    config["rope_scaling"] = None if parameters["rope_type"] == "default" else parameters
    if config["model_type"] == "smollm3":  # its default, and defaults were left out
        del config["tie_word_embeddings"]
    path.write_text(json.dumps(config, indent=2) + "\n")


def make_case(name: str) -> None:
    settings, dtype, shard_size, older_keys = CASES[name]
    for seed in range(1000):
        model = random_model(settings, dtype, seed)
        outputs, gap = golden_outputs(model, seed)
        if gap >= SMALLEST_GAP and len(set(outputs["greedy"].tolist())) >= GREEDY_LENGTH // 4:
            break
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.to(dtype).save_pretrained(directory, max_shard_size=shard_size)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if older_keys:
        older_rope_keys(directory / "config.json")
    np.savez_compressed(directory / "golden.npz", **outputs)
    num_tokens = len(set(outputs["greedy"].tolist()))
    print(f"{name}: seed {seed}, smallest gap {gap:.3f} deviations, {num_tokens} different tokens")


def make_rope_cases() -> None:
    cases = []
    for settings in ROPE_CASES:
        config = AutoConfig.for_model(**{**BASE, "model_type": "llama", "num_hidden_layers": 1, **settings})
        rotary = AutoModelForCausalLM.from_config(config).model.rotary_emb
        frequencies = [float(f"{value:.9g}") for value in rotary.inv_freq.tolist()]
        scaling = float(f"{float(rotary.attention_scaling):.9g}")
        cases.append({"config": settings, "inverse_frequencies": frequencies, "attention_scaling": scaling})
    (GOLDEN / "rope.json").write_text(json.dumps(cases, indent=1) + "\n")


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CASES:
        make_case(name)
    make_rope_cases()


if __name__ == "__main__":
    main()
