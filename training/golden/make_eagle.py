"""Writes tests/backends/golden_eagle/: tiny random EAGLE-3 heads for checkpoints of tests/backends/golden/.

The head is written here from the formulas of the paper (arXiv 2503.01840) and of its first program (SafeAILab's
cnets.py), in plain torch; the model is transformers'. Entry t has the rows of some layers of the model at token t and
the token at t + 1, and proposes the token at t + 2. See README.md.
"""

import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional
from transformers import AutoModelForCausalLM

from training.golden.make_golden import GOLDEN, SMALLEST_GAP, best_token, random_weights

HEADS = GOLDEN.parent / "golden_eagle"
NUM_DRAFTS = 4


@dataclass(frozen=True)
class Case:
    """A head: its model, the form of its files, and its config.json."""

    model: str
    config: dict[str, Any]  # Any: JSON
    layers: tuple[int, ...]  # the hidden states of transformers that the head reads
    prefix: str = ""
    layer: str = "midlayer."
    is_torch_file: bool = False
    has_embedding: bool = False
    has_qk_norm: bool = False
    speculators: dict[str, Any] = field(default_factory=dict)  # keys beside the layer's


LLAMA = {"model_type": "llama", "hidden_act": "silu", "num_hidden_layers": 1, "rms_norm_eps": 1e-5}
CASES = {
    # as SpecForge and ModelOpt write heads: the layers whose output is read, the last one included
    "llama-specforge": Case(
        model="llama",
        layers=(1, 2),
        config={
            **LLAMA,
            "architectures": ["LlamaForCausalLMEagle3"],
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "rope_theta": 10000.0,
            "vocab_size": 320,
            "draft_vocab_size": 128,
            "eagle_config": {
                "eagle_aux_hidden_state_layer_ids": [0, 1],
                "use_aux_hidden_state": True,
            },
        },
    ),
    # as EAGLE writes heads: a file of torch.save, the usual layers, an embedding, a width of its own
    "qwen3-eagle": Case(
        model="qwen3",
        layers=(2, 1, 0),
        config={
            **LLAMA,
            "architectures": ["LlamaForCausalLM"],
            "hidden_size": 96,
            "target_hidden_size": 64,
            "intermediate_size": 64,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "rope_theta": 500000.0,
            "vocab_size": 320,
            "draft_vocab_size": 96,
        },
        is_torch_file=True,
        has_embedding=True,
    ),
    # as speculators writes heads: the layers whose input is read, and more norms
    "gpt-oss-speculators": Case(
        model="gpt-oss",
        layers=(1, 0),
        config={
            **LLAMA,
            "hidden_size": 32,
            "intermediate_size": 128,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0},
            "vocab_size": 128,
        },
        layer="layers.0.",
        speculators={
            "architectures": ["Eagle3DraftModel"],
            "speculators_model_type": "eagle3",
            "speculators_config": {"algorithm": "eagle3"},
            "draft_vocab_size": 128,
            "target_hidden_size": None,
            "eagle_aux_hidden_state_layer_ids": [1, 0],
            "norm_before_fc": True,
            "norm_output": True,
        },
    ),
    # every further part that a head may have
    "qwen3-parts": Case(
        model="qwen3",
        layers=(0, 2),
        config={
            **LLAMA,
            "architectures": ["Eagle3Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 64,
            "rope_theta": 10000.0,
            "vocab_size": 320,
            "draft_vocab_size": 200,
            "attention_bias": True,
            "mlp_bias": True,
            "fc_norm": True,
            "logit_scale": 0.5,
            "eagle_aux_hidden_state_layer_ids": [0, 2],
        },
        prefix="model.",
        has_qk_norm=True,
        has_embedding=True,
    ),
}


class Head(torch.nn.Module):
    """The tensors of a head, by the names of EAGLE's own program."""

    def __init__(self, case: Case, model_size: int) -> None:
        super().__init__()
        config = case.config | case.speculators
        self.config = config
        self.size = size = config["hidden_size"]
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = head_dim = config.get("head_dim") or size // heads
        bias, inner = config.get("attention_bias", False), config["intermediate_size"]
        norms = {"hidden_norm": size, "input_layernorm": size, "post_attention_layernorm": size}
        if case.has_qk_norm:
            norms |= {"q_norm": head_dim, "k_norm": head_dim}
        self.norms = torch.nn.ParameterDict(
            {
                **{name: torch.ones(length) for name, length in norms.items()},
                "norm": torch.ones(size),
            }
        )
        num_layers = len(case.layers)
        if config.get("norm_before_fc"):
            self.norms["input_norm"] = torch.ones(num_layers * model_size)
        if config.get("fc_norm"):
            for number in range(num_layers):
                self.norms[f"fc_norm{number}"] = torch.ones(model_size)

        def linear(columns: int, rows: int, *, bias: bool = False) -> torch.nn.Linear:
            return torch.nn.Linear(columns, rows, bias=bias)

        self.fc = linear(num_layers * model_size, size)
        self.q_proj = linear(2 * size, heads * head_dim, bias=bias)
        self.k_proj = linear(2 * size, kv_heads * head_dim, bias=bias)
        self.v_proj = linear(2 * size, kv_heads * head_dim, bias=bias)
        self.o_proj = linear(heads * head_dim, size, bias=bias)
        mlp_bias = config.get("mlp_bias", False)
        self.gate_proj = linear(size, inner, bias=mlp_bias)
        self.up_proj = linear(size, inner, bias=mlp_bias)
        self.down_proj = linear(inner, size, bias=mlp_bias)
        self.lm_head = linear(size, config["draft_vocab_size"])
        if case.has_embedding:
            self.embed_tokens = torch.nn.Embedding(config["vocab_size"], size)

    def norm(self, rows: torch.Tensor, name: str) -> torch.Tensor:
        epsilon = self.config["rms_norm_eps"]
        scale = torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + epsilon)
        weight: torch.Tensor = self.norms[name]
        return rows * scale * weight

    def project(self, rows: list[torch.Tensor]) -> torch.Tensor:
        """Returns the features of entries, [T, size], from rows [T, model size] of each layer."""
        if self.config.get("fc_norm"):
            rows = [self.norm(each, f"fc_norm{number}") for number, each in enumerate(rows)]
        joined = torch.cat(rows, -1)
        if self.config.get("norm_before_fc"):
            joined = self.norm(joined, "input_norm")
        projected: torch.Tensor = self.fc(joined)
        return projected

    def forward(self, features: torch.Tensor, embedded: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Returns the rows for further entries and the logits of all entries."""
        normed = self.norm(features, "hidden_norm")
        is_speculators = "speculators_model_type" in self.config
        residual = normed if self.config.get("norm_before_residual", is_speculators) else features
        inputs = torch.cat([self.norm(embedded, "input_layernorm"), normed], -1)
        rows = residual + self.attention(inputs)
        inner = self.norm(rows, "post_attention_layernorm")
        rows = rows + self.down_proj(functional.silu(self.gate_proj(inner)) * self.up_proj(inner))
        final = self.norm(rows, "norm")
        logits = self.lm_head(final) * self.config.get("logit_scale", 1.0)
        return (final if self.config.get("norm_output") else rows), logits

    def attention(self, inputs: torch.Tensor) -> torch.Tensor:
        length = len(inputs)
        query, key, value = (
            projection(inputs).view(length, -1, self.head_dim).transpose(0, 1)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if "q_norm" in self.norms:
            query, key = self.norm(query, "q_norm"), self.norm(key, "k_norm")
        parameters = self.config.get("rope_parameters") or self.config
        powers = torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim
        angles = torch.arange(length)[:, None] * parameters["rope_theta"] ** -powers
        query, key = (turned(heads, angles) for heads in (query, key))
        group = len(query) // len(key)
        key, value = (each.repeat_interleave(group, 0) for each in (key, value))
        scores = query @ key.transpose(1, 2) * self.head_dim**-0.5
        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        attended: torch.Tensor = self.o_proj((weights @ value).transpose(0, 1).reshape(length, -1))
        return attended


def turned(heads: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotates [heads, T, head_dim] by angles [T, head_dim / 2]."""
    cos, sin = angles.cos().float(), angles.sin().float()
    first, second = heads.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def layer_rows(model: Any, token_ids: list[int]) -> list[torch.Tensor]:
    """Returns the rows that enter each layer, and the rows after the last one before the norm."""
    entering: list[torch.Tensor] = []
    last: list[torch.Tensor] = []

    def keep(module: Any, arguments: Any, outputs: Any) -> None:
        last.append((outputs[0] if isinstance(outputs, tuple) else outputs).reshape(-1, size))

    size = model.config.hidden_size
    hook = model.model.layers[-1].register_forward_hook(keep)
    outputs = model(torch.tensor([token_ids]), use_cache=False, output_hidden_states=True)
    hook.remove()
    entering = [each[0] for each in outputs.hidden_states[:-1]]
    return [*entering, last[0]]


def draft_ids(case: Case, seed: int) -> torch.Tensor:
    """Returns the model's id of each token that the head can propose, in ascending order."""
    config = case.config | case.speculators
    chosen = np.random.default_rng(seed).permutation(config["vocab_size"])
    return torch.tensor(np.sort(chosen[: config["draft_vocab_size"]]))


def make_outputs(
    case: Case, model: Any, head: Head, ids: torch.Tensor
) -> tuple[dict[str, Any], float]:
    """Returns the arrays of golden.npz, and the smallest gap of a draft in standard deviations."""
    with np.load(GOLDEN / case.model / "golden.npz") as golden:
        prompt, greedy = golden["prompt"].tolist(), golden["greedy"].tolist()
    embedding = head.embed_tokens if case.has_embedding else model.get_input_embeddings()
    token_ids = [*prompt[1:], greedy[0]]
    features = projected = head.project(
        [rows for rows in (layer_rows(model, prompt)[layer] for layer in case.layers)]
    )
    steps, drafts, smallest_gap = [], [], float("inf")
    for _ in range(NUM_DRAFTS):
        rows, logits = head(features, embedding(torch.tensor(token_ids)))
        steps.append(logits)
        draft, gap = best_token(logits[-1])
        smallest_gap = min(smallest_gap, gap)
        drafts.append(int(ids[draft]))
        token_ids.append(drafts[-1])
        features = torch.cat([features, rows[-1:]])
    arrays = {
        "features": projected.numpy(),
        "entry_logits": steps[0].numpy(),
        "chained_logits": np.stack([step[-1].numpy() for step in steps]),
        "drafts": np.array(drafts, np.int64),
        "ids": ids.numpy(),
    }
    return arrays, smallest_gap


def fill(head: Head, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in head.named_parameters():
        tensor.copy_(random_weights(name, tensor.shape, generator).bfloat16().float())


def stored_tensors(case: Case, head: Head, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns the tensors by the names of the case's program."""
    tensors, layer = {}, case.prefix + case.layer
    for name, tensor in head.state_dict().items():
        own = name.removeprefix("norms.")
        if name.startswith("norms."):
            own += ".weight"
        part = own.partition(".")[0]
        if part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"):
            own = f"{layer}self_attn.{own}"
        elif part in ("gate_proj", "up_proj", "down_proj"):
            own = f"{layer}mlp.{own}"
        elif part in ("hidden_norm", "input_layernorm", "post_attention_layernorm"):
            own = layer + own
        elif part.startswith("fc_norm"):
            own = f"{case.prefix}fc_norm.{part.removeprefix('fc_norm')}.weight"
        elif part != "lm_head":
            own = case.prefix + own
        tensors[own] = tensor.bfloat16()
    config = case.config | case.speculators
    if len(ids) < config["vocab_size"]:
        tensors["d2t"] = ids - torch.arange(len(ids))
        tensors["t2d"] = torch.zeros(config["vocab_size"], dtype=torch.bool)
        tensors["t2d"][ids] = True
    return tensors


def make_case(name: str, case: Case) -> None:
    model = AutoModelForCausalLM.from_pretrained(
        GOLDEN / case.model, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    for seed in range(1000):
        head, ids = Head(case, model.config.hidden_size), draft_ids(case, seed)
        fill(head, seed)
        arrays, gap = make_outputs(case, model, head, ids)
        if gap >= SMALLEST_GAP and len(set(arrays["drafts"].tolist())) == NUM_DRAFTS:
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best logits apart from the second")
    directory = HEADS / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    tensors = stored_tensors(case, head, ids)
    if case.is_torch_file:
        torch.save(tensors, directory / "pytorch_model.bin")
    else:
        save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    config = case.config
    if case.speculators:
        config = {**case.speculators, "transformer_layer_config": config}
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(f"{name}: seed {seed}, smallest gap {gap:.3f} deviations, drafts {arrays['drafts']}")


def main() -> None:
    with torch.no_grad():
        for name in sys.argv[1:] or CASES:
            make_case(name, CASES[name])


if __name__ == "__main__":
    main()
