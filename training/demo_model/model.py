"""A Qwen3 decoder in plain torch, small enough to train on a processor."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of the network, named as in a Hugging Face `config.json`."""

    vocab_size: int
    hidden_size: int = 256
    intermediate_size: int = 640
    num_hidden_layers: int = 5
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    max_position_embeddings: int = 4096


class RMSNorm(nn.Module):
    """Root-mean-square normalisation with a learned scale."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:
        return functional.rms_norm(
            hidden, self.weight.shape, self.weight.to(hidden.dtype), self.eps
        )


def rotate(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding that pairs the two halves of each head."""
    first, second = heads.chunk(2, dim=-1)
    return heads * cosine + torch.cat((-second, first), dim=-1) * sine


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention by torch's own kernel; a single query sees all keys."""
    return functional.scaled_dot_product_attention(query, key, value, is_causal=query.shape[2] > 1)


def short_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same for many short sequences, where plain products take a third of the time on a processor."""
    length, size = query.shape[2], query.shape[3]
    hidden_part = torch.full((length, length), float("-inf"), dtype=value.dtype).triu(1)
    scores = (query * size**-0.5).flatten(0, 1) @ key.flatten(0, 1).mT + hidden_part
    return (scores.softmax(-1).to(value.dtype) @ value.flatten(0, 1)).unflatten(0, query.shape[:2])


LayerCache = tuple[Tensor, Tensor]


class Attention(nn.Module):
    """Grouped-query attention with normalised queries and keys."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        query_size = config.num_attention_heads * config.head_dim
        key_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, query_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, key_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, key_size, bias=False)
        self.o_proj = nn.Linear(query_size, config.hidden_size, bias=False)
        self.q_norm = RMSNorm(config.head_dim, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.head_dim, config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, cosine: Tensor, sine: Tensor, cache: LayerCache | None
    ) -> tuple[Tensor, LayerCache]:
        batch, length, _ = hidden.shape
        shape = (batch, length, -1, self.config.head_dim)
        query = rotate(self.q_norm(self.q_proj(hidden).view(shape)).transpose(1, 2), cosine, sine)
        key = rotate(self.k_norm(self.k_proj(hidden).view(shape)).transpose(1, 2), cosine, sine)
        value = self.v_proj(hidden).view(shape).transpose(1, 2)
        if cache is not None:
            key, value = torch.cat((cache[0], key), dim=2), torch.cat((cache[1], value), dim=2)
        grown = (key, value)
        groups = self.config.num_attention_heads // self.config.num_key_value_heads
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        attend = short_attention if self.training and length < 512 else causal_attention
        mixed = attend(query, key, value)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1)), grown


class FeedForward(nn.Module):
    """The SwiGLU block."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


class Layer(nn.Module):
    """One pre-normalised decoder layer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = FeedForward(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, hidden: Tensor, cosine: Tensor, sine: Tensor, cache: LayerCache | None
    ) -> tuple[Tensor, LayerCache]:
        mixed, cache = self.self_attn(self.input_layernorm(hidden), cosine, sine, cache)
        hidden = hidden + mixed
        return hidden + self.mlp(self.post_attention_layernorm(hidden)), cache


class Decoder(nn.Module):
    """The embedding, the layers and the last norm (`model.*` in the weight file)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class Qwen3(nn.Module):
    """The language model; the output head is the embedding matrix."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last_in_block = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(
                    parameter,
                    std=0.02 / (2 * config.num_hidden_layers) ** 0.5 if last_in_block else 0.02,
                )

    def rotary_tables(self, start: int, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the rotation angles for positions from `start`."""
        exponents = (
            torch.arange(0, self.config.head_dim, 2, dtype=torch.float32) / self.config.head_dim
        )
        angles = torch.outer(
            torch.arange(start, start + length).float(), self.config.rope_theta**-exponents
        )
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def hidden_states(
        self, token_ids: Tensor, caches: list[LayerCache] | None = None
    ) -> tuple[Tensor, list[LayerCache]]:
        """The normalised last hidden states and the grown key/value caches."""
        hidden = self.model.embed_tokens(token_ids)
        start = caches[0][0].shape[2] if caches else 0
        cosine, sine = self.rotary_tables(start, token_ids.shape[1], hidden.dtype)
        grown: list[LayerCache] = []
        for position, layer in enumerate(self.model.layers):
            hidden, cache = layer(hidden, cosine, sine, caches[position] if caches else None)
            grown.append(cache)
        return self.model.norm(hidden), grown

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the vocabulary."""
        return functional.linear(hidden, self.model.embed_tokens.weight)
