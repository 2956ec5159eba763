"""Computes the exported model again in numpy, straight from the bytes of the file, and compares it with torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.demo_model.conversations import MODEL_DIRECTORY
from training.demo_model.evaluate import Answerer

Weights = dict[str, np.ndarray]

ELEMENTS = {"BF16": np.uint16, "F32": np.float32, "I8": np.int8}


def read_weights(path: Path) -> Weights:
    """The tensors of a safetensors file as float32: bfloat16 ones, and those that `tools.store_int8` has stored."""
    data = path.read_bytes()
    header_size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_size])
    header.pop("__metadata__", None)
    weights = {}
    for name, entry in header.items():
        start, end = (8 + header_size + offset for offset in entry["data_offsets"])
        elements = np.frombuffer(data[start:end], ELEMENTS[entry["dtype"]])
        if entry["dtype"] == "BF16":
            elements = (elements.astype(np.uint32) << 16).view(np.float32)
        weights[name] = elements.astype(np.float32).reshape(entry["shape"])
    for name in [name for name in weights if f"{name}_scale" in weights]:
        weights[name] = (weights[name] - weights.pop(f"{name}_zero_point")) * weights.pop(
            f"{name}_scale"
        )
    return weights


def normalised(hidden: np.ndarray, scale: np.ndarray, eps: float) -> np.ndarray:
    """RMS norm."""
    return hidden / np.sqrt((hidden**2).mean(-1, keepdims=True) + eps) * scale


def rotated(heads: np.ndarray, theta: float) -> np.ndarray:
    """Rotary embedding of heads of shape (length, heads, size)."""
    length, _, size = heads.shape
    angles = np.arange(length)[:, None] * theta ** (-np.arange(0, size, 2) / size)
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    first, second = heads[..., : size // 2], heads[..., size // 2 :]
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), -1)


def attention(
    hidden: np.ndarray, weights: Weights, prefix: str, config: dict[str, Any]
) -> np.ndarray:
    """Causal grouped-query attention."""
    length, size, eps = len(hidden), config["head_dim"], config["rms_norm_eps"]
    query, key, value = (
        (hidden @ weights[f"{prefix}{name}_proj.weight"].T).reshape(length, -1, size)
        for name in ("q", "k", "v")
    )
    query = rotated(normalised(query, weights[f"{prefix}q_norm.weight"], eps), config["rope_theta"])
    key = rotated(normalised(key, weights[f"{prefix}k_norm.weight"], eps), config["rope_theta"])
    groups = config["num_attention_heads"] // config["num_key_value_heads"]
    key, value = key.repeat(groups, 1), value.repeat(groups, 1)
    scores = np.einsum("qhd,khd->hqk", query, key) / size**0.5
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return (
        np.einsum("hqk,khd->qhd", shares, value).reshape(length, -1)
        @ weights[f"{prefix}o_proj.weight"].T
    )


def logits(token_ids: list[int], weights: Weights, config: dict[str, Any]) -> np.ndarray:
    """Scores for every position."""
    eps, hidden = config["rms_norm_eps"], weights["model.embed_tokens.weight"][token_ids]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        inner = normalised(hidden, weights[f"{prefix}input_layernorm.weight"], eps)
        hidden = hidden + attention(inner, weights, f"{prefix}self_attn.", config)
        inner = normalised(hidden, weights[f"{prefix}post_attention_layernorm.weight"], eps)
        gate = inner @ weights[f"{prefix}mlp.gate_proj.weight"].T
        up = inner @ weights[f"{prefix}mlp.up_proj.weight"].T
        hidden = (
            hidden + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{prefix}mlp.down_proj.weight"].T
        )
    return (
        normalised(hidden, weights["model.norm.weight"], eps)
        @ weights["model.embed_tokens.weight"].T
    )


def main() -> None:
    """Compare both computations on a prompt."""
    config = json.loads((MODEL_DIRECTORY / "config.json").read_text(encoding="utf-8"))
    weights = read_weights(MODEL_DIRECTORY / "model.safetensors")
    answerer = Answerer(MODEL_DIRECTORY)
    token_ids = answerer.tokenizer.encode(
        "<|im_start|>user\nWhat is 12 + 30?<|im_end|>\n<|im_start|>assistant\n"
    ).ids
    with torch.inference_mode():
        expected = answerer.model.logits(
            answerer.model.hidden_states(torch.tensor([token_ids]))[0]
        )[0].numpy()
    difference = float(np.abs(logits(token_ids, weights, config) - expected).max())
    print(
        f"{sum(value.size for value in weights.values())} parameters, largest logit difference {difference:.2e}"
    )
    if difference > 1e-3:
        raise SystemExit("the exported file does not compute what the torch model computes")


if __name__ == "__main__":
    main()
