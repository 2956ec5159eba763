"""A reference of jina-embeddings-v2, whose code is not in transformers: BERT with ALiBi and gated layers.

Formulas and names of tensors: huggingface.co/jinaai/jina-bert-implementation, modeling_bert.py.
"""

from typing import Any

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        size, self.num_heads = config.hidden_size, config.num_attention_heads
        projections = {name: nn.Linear(size, size) for name in ("query", "key", "value")}
        self.self = nn.ModuleDict(projections)
        norm = nn.LayerNorm(size, config.layer_norm_eps)
        self.output = nn.ModuleDict({"dense": nn.Linear(size, size), "LayerNorm": norm})

    def forward(self, rows: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            layer(rows).unflatten(-1, (self.num_heads, -1)).transpose(0, 1)
            for layer in self.self.values()
        )
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5 + bias
        mixed = (scores.softmax(-1) @ value).transpose(0, 1).flatten(1)
        return self.output["LayerNorm"](self.output["dense"](mixed) + rows)


class Layer(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        size, inner_size = config.hidden_size, config.intermediate_size
        self.attention = Attention(config)
        self.mlp = nn.ModuleDict(
            {
                "gated_layers": nn.Linear(size, 2 * inner_size, bias=False),
                "wo": nn.Linear(inner_size, size),
                "layernorm": nn.LayerNorm(size, config.layer_norm_eps),
            }
        )

    def forward(self, rows: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        rows = self.attention(rows, bias)
        gate, plain = self.mlp["gated_layers"](rows).chunk(2, -1)
        outer = self.mlp["wo"](nn.functional.gelu(gate) * plain)
        return self.mlp["layernorm"](outer + rows)


class JinaBert(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, size = config, config.hidden_size
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(config.vocab_size, size),
                "token_type_embeddings": nn.Embedding(config.type_vocab_size, size),
                "LayerNorm": nn.LayerNorm(size, config.layer_norm_eps),
            }
        )
        layers = [Layer(config) for _ in range(config.num_hidden_layers)]
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(layers)})

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Returns the hidden rows of one text, [T, hidden size]."""
        parts = self.embeddings
        rows = parts["word_embeddings"](token_ids) + parts["token_type_embeddings"].weight[0]
        rows = parts["LayerNorm"](rows)
        places = torch.arange(len(token_ids))
        distances = (places[:, None] - places[None, :]).abs()
        slopes = torch.tensor(compute_slopes(self.config.num_attention_heads))
        for layer in self.encoder["layer"]:
            rows = layer(rows, -slopes[:, None, None] * distances)
        return rows


def compute_slopes(num_heads: int) -> list[float]:
    power = 2 ** (num_heads.bit_length() - 1)
    first = 2 ** (-8 / power)
    slopes = [first ** (number + 1) for number in range(power)]
    if power == num_heads:
        return slopes
    return slopes + compute_slopes(2 * power)[0::2][: num_heads - power]
