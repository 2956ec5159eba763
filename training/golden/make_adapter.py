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
}


def make(name: str) -> None:
    checkpoint, settings = CASES[name]
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(GOLDEN / checkpoint, dtype=torch.float32).eval()
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
    for key, values in model.named_parameters():
        if "lora_" in key:  # B is zeros before any training
            torch.nn.init.normal_(values, std=0.3 if "lora_A" in key else 0.1)
    prompt = np.load(GOLDEN / checkpoint / "golden.npz")["prompt"]
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
