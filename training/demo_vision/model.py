"""A Qwen3-VL without DeepStack in plain torch, small enough to train on a processor.

It computes what transformers' Qwen3VLForConditionalGeneration does (check_export.py), but for many conversations about
one picture at once: these share the rows of their common beginning, the trunk.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.demo_vision.encoder import Encoder, Pictures, attend, rotate
from training.demo_vision.sizes import Sizes, TextSizes


@dataclass(frozen=True, slots=True)
class Rows:
    """Parts of conversations, padded to one length: which of all tokens they hold, and whose trunk they go on from."""

    index: Tensor  # [rows, length]; 0 where there is nothing
    valid: Tensor  # [rows, length]
    owners: Tensor | None  # [rows], of trunks; None for the trunks themselves


def gathered(rows: Tensor, index: Tensor) -> Tensor:
    """Returns rows[index], whose gradient is faster this way."""
    return rows.index_select(0, index.flatten()).unflatten(0, index.shape)


class RmsNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, rows: Tensor) -> Tensor:
        return functional.rms_norm(rows, self.weight.shape, self.weight.to(rows.dtype), self.eps)


class Attention(nn.Module):
    def __init__(self, sizes: TextSizes) -> None:
        super().__init__()
        self.head_dim = sizes.head_dim
        self.num_shared = sizes.num_attention_heads // sizes.num_key_value_heads
        key_size = sizes.num_key_value_heads * sizes.head_dim
        query_size = sizes.num_attention_heads * sizes.head_dim
        self.q_proj = nn.Linear(sizes.hidden_size, query_size, bias=False)
        self.k_proj = nn.Linear(sizes.hidden_size, key_size, bias=False)
        self.v_proj = nn.Linear(sizes.hidden_size, key_size, bias=False)
        self.o_proj = nn.Linear(query_size, sizes.hidden_size, bias=False)
        self.q_norm = RmsNorm(sizes.head_dim, sizes.rms_norm_eps)
        self.k_norm = RmsNorm(sizes.head_dim, sizes.rms_norm_eps)

    def forward(self, rows: Tensor, cos: Tensor, sin: Tensor, parts: list["Masked"]) -> Tensor:
        """Takes and returns [tokens, size] of all parts, one after the other."""
        query, key, value = (
            project(rows).unflatten(-1, (-1, self.head_dim))
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        query = rotate(self.q_norm(query), cos, sin).to(value.dtype)
        key = rotate(self.k_norm(key), cos, sin).to(value.dtype)
        key, value = (each.repeat_interleave(self.num_shared, dim=1) for each in (key, value))
        trunks: tuple[Tensor, Tensor] | None = None
        mixed = []
        for part in parts:
            own = [gathered(each, part.rows.index).transpose(1, 2) for each in (query, key, value)]
            seen = (own[1], own[2])
            if part.rows.owners is None:
                trunks = seen
            else:
                assert trunks is not None, "the trunks come first"
                old = [each.index_select(0, part.rows.owners) for each in trunks]
                seen = (torch.cat((old[0], own[1]), 2), torch.cat((old[1], own[2]), 2))
            found = attend(own[0], *seen, part.hidden).transpose(1, 2).flatten(0, 1).flatten(1)
            mixed.append(found.index_select(0, part.places))
        return self.o_proj(torch.cat(mixed))


class Mlp(nn.Module):
    def __init__(self, sizes: TextSizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=False)
        self.up_proj = nn.Linear(sizes.hidden_size, sizes.intermediate_size, bias=False)
        self.down_proj = nn.Linear(sizes.intermediate_size, sizes.hidden_size, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(rows)) * self.up_proj(rows))


class Layer(nn.Module):
    def __init__(self, sizes: TextSizes) -> None:
        super().__init__()
        self.self_attn = Attention(sizes)
        self.mlp = Mlp(sizes)
        self.input_layernorm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)

    def forward(self, rows: Tensor, cos: Tensor, sin: Tensor, parts: list["Masked"]) -> Tensor:
        rows = rows + self.self_attn(self.input_layernorm(rows), cos, sin, parts)
        return rows + self.mlp(self.post_attention_layernorm(rows))


class LanguageModel(nn.Module):
    def __init__(self, sizes: TextSizes) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocab_size, sizes.hidden_size)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.num_hidden_layers))
        self.norm = RmsNorm(sizes.hidden_size, sizes.rms_norm_eps)


@dataclass(frozen=True, slots=True)
class Masked:
    """Rows, and what is hidden from them: -inf where a query must not look."""

    rows: Rows
    hidden: Tensor  # [rows, 1, queries, keys]
    places: Tensor  # of what is no padding, in the rows one after the other


def masked(parts: list[Rows], dtype: torch.dtype) -> list[Masked]:
    """A token sees its trunk, and what stands before it in its own part. The trunks come first."""
    made = []
    for rows in parts:
        length = rows.index.shape[1]
        supports_images = (
            torch.ones(length, length).tril().bool().expand(len(rows.index), 1, length, length)
        )
        if rows.owners is not None:
            trunk = parts[0].valid[rows.owners][:, None, None].expand(-1, 1, length, -1)
            supports_images = torch.cat((trunk, supports_images), -1)
        hidden = torch.zeros(supports_images.shape, dtype=dtype).masked_fill(
            ~supports_images, float("-inf")
        )
        made.append(Masked(rows, hidden, torch.nonzero(rows.valid.flatten())[:, 0]))
    return made


class Qwen3Vl(nn.Module):
    """Its output head is the embedding matrix; names are those of the checkpoint's tensors behind `model.`."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.visual = Encoder(sizes.vision, sizes.text.hidden_size)
        self.language_model = LanguageModel(sizes.text)
        self.axes = frequency_axes(sizes.text)
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                depth = (
                    sizes.vision.depth
                    if name.startswith("visual")
                    else sizes.text.num_hidden_layers
                )
                is_last = name.endswith(
                    (
                        "o_proj.weight",
                        "down_proj.weight",
                        "attn.proj.weight",
                        "mlp.linear_fc2.weight",
                    )
                )
                nn.init.normal_(parameter, std=0.02 / (2 * depth) ** 0.5 if is_last else 0.02)

    def features(self, pictures: list[Pictures]) -> Tensor:
        """Returns those of all pictures, one after the other."""
        if not pictures:
            return torch.zeros(0, self.sizes.text.hidden_size)
        return torch.cat([self.visual(each) for each in pictures])

    def hidden_states(
        self,
        token_ids: Tensor,
        positions: Tensor,
        features: Tensor,
        cells: Tensor,
        parts: list[Rows],
    ) -> Tensor:
        """Takes all tokens of all parts, one after the other; `cells` are -1 where a token has no features."""
        rows = self.language_model.embed_tokens(token_ids)
        places = torch.nonzero(cells >= 0)[:, 0]
        rows = rows.index_copy(0, places, features[cells[places]].to(rows.dtype))
        angles = positions[:, self.axes].float() * self.frequencies()
        angles = torch.cat((angles, angles), -1)[:, None]
        dtype = (
            torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else torch.float32
        )
        cos, sin, with_masks = angles.cos().to(dtype), angles.sin().to(dtype), masked(parts, dtype)
        for layer in self.language_model.layers:
            rows = layer(rows, cos, sin, with_masks)
        return self.language_model.norm(rows)

    def frequencies(self) -> Tensor:
        head_dim = self.sizes.text.head_dim
        return self.sizes.text.rope_theta ** -(torch.arange(0, head_dim, 2) / head_dim)

    def logits(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self.language_model.embed_tokens.weight)


def frequency_axes(sizes: TextSizes) -> list[int]:
    """Returns for each frequency whether it turns by time, row or column: every third one by a row, and so on."""
    axes = np.zeros(sizes.head_dim // 2, np.int64)
    for axis in (1, 2):
        axes[axis : 3 * sizes.mrope_section[axis] : 3] = axis
    return [int(axis) for axis in axes]
