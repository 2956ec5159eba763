"""Writes tests/backends/golden_adapters/<name>/: adapters as PEFT writes them, and what its models compute."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden"
OUT = GOLDEN.parent / "golden_adapters"

# name, checkpoint, settings of LoraConfig
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("llama-bias", {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]}),
    "patterns": (
        "qwen3",
        {
            "r": 4,
            "lora_alpha": 6,
            "use_rslora": True,
            "target_modules": "all-linear",
            "rank_pattern": {"down_proj": 2, r"layers\.1\..*k_proj": 3},
            "alpha_pattern": {r"^model\.layers\.0\.self_attn\.q_proj": 12, "o_proj": 3},
            "layers_to_transform": None,
        },
    ),
    "fused": (
        "phi3",
        {
            "r": 3,
            "lora_alpha": 3,
            "target_modules": ["qkv_proj", "gate_up_proj"],
            "layers_to_transform": [1],
        },
    ),
    # the matrices have biases, which DoRA leaves out of its factor
    "dora": (
        "llama-bias",
        {"r": 3, "lora_alpha": 6, "use_dora": True, "target_modules": ["q_proj", "down_proj"]},
    ),
    "dora-everywhere": (
        "llama",
        {
            "r": 2,
            "use_dora": True,
            "target_modules": ["embed_tokens", "o_proj", "lm_head"],
            "exclude_modules": r".*layers\.0\..*",
        },
    ),
    "biases": (
        "gpt2",  # its norms have biases, its matrices are stored [columns, rows]
        {
            "r": 2,
            "bias": "all",
            "use_dora": True,
            "fan_in_fan_out": True,
            "target_modules": ["c_attn", "c_proj"],
        },
    ),
    "lora-bias": ("qwen2", {"r": 2, "lora_bias": True, "target_modules": ["q_proj", "up_proj"]}),
    "embedding": (
        "gemma3",  # its embedding has a factor; head and embedding are one matrix
        {"r": 3, "use_rslora": True, "target_modules": ["embed_tokens", "v_proj"]},
    ),
    "tied": (
        "qwen3",
        {"r": 2, "ensure_weight_tying": True, "target_modules": ["embed_tokens", "k_proj"]},
    ),
    "tokens": (
        "qwen3",  # the tokens are rows of the head, too
        {"r": 2, "target_modules": ["q_proj"], "trainable_token_indices": [7, 3, 41]},
    ),
    "tokens-untied": (
        "llama",
        {
            "r": 2,
            "target_modules": ["q_proj"],
            "trainable_token_indices": {"embed_tokens": [9, 3], "lm_head": [5]},
        },
    ),
    "norms": (
        "qwen3",  # also norms of each head
        {
            "r": 2,
            "target_modules": ["q_proj"],
            "modules_to_save": ["norm", "input_layernorm", "q_norm", "k_norm"],
        },
    ),
}
_CHANGED = (".bias", "norm.modules_to_save", "norm.weight", "trainable_tokens_delta")


def round_embedding_factor(model: torch.nn.Module) -> None:
    """Rounds Gemma's factor to the type of the stored weights, as transformers does for that type."""
    for name, values in model.named_buffers():
        if name.endswith("embed_scale"):
            values.copy_(values.bfloat16().float())


def make(name: str) -> None:
    checkpoint, settings = CASES[name]
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(GOLDEN / checkpoint, dtype=torch.float32).eval()
    round_embedding_factor(base)
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    for key, values in model.named_parameters():
        if "magnitude" in key:  # the length of each row before any training
            values.data *= 1 + 0.3 * torch.rand_like(values)
        elif "lora_" in key:  # B is zeros before any training
            torch.nn.init.normal_(values, std=0.3 if "_A" in key else 0.1)
        elif values.requires_grad and any(part in key for part in _CHANGED):
            values.data += 0.2 * torch.randn_like(values)
    prompt = np.load(GOLDEN / checkpoint / "golden.npz")["prompt"]
    tokens = settings.get("trainable_token_indices", [])
    tokens = tokens if isinstance(tokens, list) else tokens["embed_tokens"]
    prompt[8 : 8 + len(tokens)] = tokens
    with torch.no_grad():
        logits = model(torch.tensor(prompt[None])).logits[0].numpy()
    directory = OUT / name
    shutil.rmtree(directory, ignore_errors=True)
    model.save_pretrained(directory, safe_serialization=True)
    (directory / "README.md").unlink()
    config = directory / "adapter_config.json"
    config.write_text(config.read_text().replace(str(GOLDEN / checkpoint), checkpoint))
    np.savez_compressed(
        directory / "golden.npz", prompt=prompt, logits=logits, checkpoint=np.array(checkpoint)
    )
    print(name, np.abs(logits).mean(), sorted(path.name for path in directory.iterdir()))


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        make(case)
