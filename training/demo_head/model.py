"""The drafting head in torch: EAGLE-3's network, for training and for judging, and the target's hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.demo_model.model import FeedForward, ModelConfig, Qwen3, RMSNorm, rotate


@dataclass(frozen=True)
class HeadConfig(ModelConfig):
    """The sizes of the head, named as in its `config.json`, and the layers of the target that it reads.

    Id i of `layer_ids` is the residual stream that enters layer i: id 0 would be the embeddings.
    """

    num_hidden_layers: int = 1
    draft_vocab_size: int = 1024
    layer_ids: tuple[int, ...] = (1, 3, 4)


def read_target(
    target: Qwen3, token_ids: Tensor, layer_ids: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The streams that enter some layers, side by side, and the normalised last hidden states."""
    hidden = target.model.embed_tokens(token_ids)
    cosine, sine = target.rotary_tables(0, token_ids.shape[1], hidden.dtype)
    streams: dict[int, Tensor] = {}
    for number, layer in enumerate(target.model.layers):
        streams[number] = hidden
        hidden, _ = layer(hidden, cosine, sine, None)
    return torch.cat([streams[number] for number in layer_ids], -1), target.model.norm(hidden)


class WideAttention(nn.Module):
    """Grouped-query attention over an embedding and a feature side by side; queries and keys are not normalised."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.groups = config.num_attention_heads // config.num_key_value_heads
        query_size = config.num_attention_heads * config.head_dim
        key_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(2 * config.hidden_size, query_size, bias=False)
        self.k_proj = nn.Linear(2 * config.hidden_size, key_size, bias=False)
        self.v_proj = nn.Linear(2 * config.hidden_size, key_size, bias=False)
        self.o_proj = nn.Linear(query_size, config.hidden_size, bias=False)

    def queries(self, inputs: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Rotated queries as (batch, heads, rows, size)."""
        heads = self.q_proj(inputs).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        return rotate(heads, cosine, sine) * self.head_dim**-0.5

    def memories(self, inputs: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor]:
        """Rotated keys and values, one for each query head."""
        key, value = (
            part(inputs).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in (self.k_proj, self.v_proj)
        )
        key = rotate(key, cosine, sine)
        return key.repeat_interleave(self.groups, 1), value.repeat_interleave(self.groups, 1)


class MiddleLayer(nn.Module):
    """The head's only decoder layer (`midlayer.*` in the weight file)."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        self.self_attn = WideAttention(config)
        self.mlp = FeedForward(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.hidden_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def inputs(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """The attention's input: an embedding, and the feature of the position before it."""
        parts = (self.input_layernorm(embeddings), self.hidden_norm(features))
        return torch.cat([part.to(features.dtype) for part in parts], -1)


class DraftHead(nn.Module):
    """The head; the target lends it the embeddings.

    `d2t` has the offset from each draft id to the target's id; `t2d` says which of the target's ids are drafted.
    """

    def __init__(self, config: HeadConfig, drafted_ids: Tensor) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(len(config.layer_ids) * config.hidden_size, config.hidden_size, False)
        self.midlayer = MiddleLayer(config)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.draft_vocab_size, bias=False)
        known = torch.zeros(config.vocab_size, dtype=torch.bool)
        known[drafted_ids] = True
        self.register_buffer("d2t", drafted_ids - torch.arange(len(drafted_ids)))
        self.register_buffer("t2d", known)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                last_in_block = name.endswith(("o_proj.weight", "down_proj.weight"))
                nn.init.normal_(parameter, std=0.005 if last_in_block else 0.02)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores over the draft vocabulary."""
        return self.lm_head(self.norm(hidden))

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """The target's ids of draft ids."""
        return draft_ids + self.d2t[draft_ids]


class Unrolling:
    """Drafts from many positions of the same sequences at once, as EAGLE-3's training does it.

    The draft of row t starts from the target's feature of token t and the embedding of token t + 1. A later step has
    the next token's embedding, and the head's own output of the step before in place of a feature. A step sees the
    entries of the first step up to t, and its own draft's entries since: exactly what a server's cache holds there.
    """

    def __init__(
        self, head: DraftHead, streams: Tensor, next_embeddings: Tensor, rows: Tensor, steps: int
    ) -> None:
        self.head, self.rows = head, rows
        length = streams.shape[1]
        size = head.config.head_dim
        exponents = torch.arange(0, size, 2, dtype=torch.float32) / size
        angles = torch.outer(
            torch.arange(length + steps).float(), head.config.rope_theta**-exponents
        )
        angles = torch.cat((angles, angles), -1)
        self.cosine, self.sine = angles.cos().to(streams.dtype), angles.sin().to(streams.dtype)
        features = head.fc(streams)
        inputs = head.midlayer.inputs(next_embeddings, features)
        self.keys, self.values = head.midlayer.self_attn.memories(
            inputs, self.cosine[:length], self.sine[:length]
        )
        self.hidden_part = torch.where(torch.arange(length) > rows[:, None, :, None], -1e9, 0.0)
        self.own: list[tuple[Tensor, Tensor]] = []
        self.first_inputs, self.features = self.select(inputs), self.select(features)

    def select(self, values: Tensor) -> Tensor:
        """The values of the rows."""
        return values.gather(1, self.rows[:, :, None].expand(-1, -1, values.shape[2]))

    def first(self) -> Tensor:
        """The outputs of the first step."""
        return self.attend(self.first_inputs, self.features, 0)

    def later(self, embeddings: Tensor, outputs: Tensor) -> Tensor:
        """The outputs of one more step, from the next tokens and the outputs of the step before."""
        layer, step = self.head.midlayer, len(self.own) + 1
        inputs = layer.inputs(embeddings, outputs)
        self.own.append(layer.self_attn.memories(inputs, *self.rotation(step)))
        return self.attend(inputs, outputs, step)

    def rotation(self, step: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines for the rows at a step."""
        positions = self.rows + step
        return self.cosine[positions][:, None], self.sine[positions][:, None]

    def attend(self, inputs: Tensor, residual: Tensor, step: int) -> Tensor:
        """The layer's attention and feed-forward block."""
        layer = self.head.midlayer
        query = layer.self_attn.queries(inputs, *self.rotation(step))
        shared = (query @ self.keys.mT).float() + self.hidden_part
        own = [(query * key).sum(-1, keepdim=True).float() for key, _ in self.own]
        shares = torch.cat([shared, *own], -1).softmax(-1).to(query.dtype)
        length = shared.shape[-1]
        mixed = shares[..., :length] @ self.values
        for number, (_, value) in enumerate(self.own):
            mixed = mixed + shares[..., length + number, None] * value
        hidden = residual + layer.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
        return hidden + layer.mlp(layer.post_attention_layernorm(hidden))
