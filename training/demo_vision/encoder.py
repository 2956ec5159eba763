"""The vision encoder of a Qwen3-VL without DeepStack in plain torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.demo_vision.sizes import MERGE, PATCH, VisionSizes

THETA = 10000.0
EPS = 1e-6
NEAR = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))  # rows and columns
FAR = tuple((2 * down, 2 * across) for down, across in NEAR)
SHARPNESS = 4.0  # of a head's look at one neighbour, in each of the two fastest frequencies


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures of one size."""

    pixels: Tensor  # uint8 [pictures, height, width, 3]

    @property
    def grid(self) -> tuple[int, int]:
        """Returns rows and columns of patches."""
        return self.pixels.shape[1] // PATCH, self.pixels.shape[2] // PATCH


def attend(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Takes [rows, heads, length, head_dim]; plain products take a third of the time of torch's own kernel here."""
    scores = (query * query.shape[-1] ** -0.5) @ key.mT
    if hidden is not None:
        scores = scores + hidden
    return scores.softmax(-1).to(value.dtype) @ value


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((-second, first), dim=-1) * sin


def merged_order(grid: Tensor) -> Tensor:
    """Brings [..., rows, columns, size] to [..., patches, size]: square after square of those that are merged."""
    rows, columns = grid.shape[-3:-1]
    cut = grid.unflatten(-3, (rows // MERGE, MERGE)).unflatten(-2, (columns // MERGE, MERGE))
    return cut.transpose(-4, -3).flatten(-5, -2)


def patches_of(pictures: Pictures) -> Tensor:
    """Returns [pictures, patches, 3 * PATCH * PATCH], from -1 to 1."""
    rows, columns = pictures.grid
    cut = pictures.pixels.unflatten(1, (rows, PATCH)).unflatten(
        3, (columns, PATCH)
    )  # [n, rows, y, columns, x, 3]
    flat = cut.permute(0, 1, 3, 5, 2, 4).flatten(3)
    return merged_order(flat).float() / 127.5 - 1


def turns_of(rows: int, columns: int, head_dim: int) -> tuple[Tensor, Tensor]:
    """Returns cosines and sines [patches, 1, head_dim]: a half turns by the row, the other by the column."""
    places = merged_order(
        torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"), -1)
    )
    frequencies = THETA ** -(torch.arange(0, head_dim // 2, 2) / (head_dim // 2))
    angles = (places[..., None] * frequencies).flatten(1)
    angles = torch.cat((angles, angles), -1)[:, None]
    return angles.cos(), angles.sin()


def stretched(table: Tensor, rows: int, columns: int) -> Tensor:
    """Blends a square table of positions [side * side, size] for a grid; returns [patches, size]."""
    side = math.isqrt(len(table))
    places = [torch.linspace(0, side - 1, number) for number in (rows, columns)]
    lows = [place.long() for place in places]
    shares = [place - low for place, low in zip(places, lows, strict=True)]
    square, total = table.unflatten(0, (side, side)), torch.zeros(())
    for down in (0, 1):
        for across in (0, 1):
            near = square[(lows[0] + down).clamp(max=side - 1)][
                :, (lows[1] + across).clamp(max=side - 1)
            ]
            row_share, column_share = (
                share if is_upper else 1 - share
                for share, is_upper in zip(shares, (down, across), strict=True)
            )
            total = total + near * (row_share[:, None] * column_share)[..., None]
    return merged_order(total)


class VisionAttention(nn.Module):
    def __init__(self, sizes: VisionSizes) -> None:
        super().__init__()
        self.num_heads = sizes.num_heads
        self.qkv = nn.Linear(sizes.hidden_size, 3 * sizes.hidden_size)
        self.proj = nn.Linear(sizes.hidden_size, sizes.hidden_size)

    @torch.no_grad()
    def look_at(self, offsets: Sequence[tuple[int, int]]) -> None:
        """Makes the first heads see one neighbour each, as a convolution does; what training makes of it is free.

        Queries and keys get biases alone: turned by their places, their product is largest where the key's place is
        the query's plus the offset.
        """
        query, key, _ = self.qkv.bias.unflatten(
            0, (3, self.num_heads, 2, 2, -1)
        )  # cosine or sine, axis, frequency
        num_frequencies = query.shape[-1]
        length = (SHARPNESS * (4 * num_frequencies) ** 0.5) ** 0.5
        for head, offset in enumerate(offsets):
            for axis, steps in enumerate(offset):
                for number in range(2):
                    angle = steps * THETA ** -(number / num_frequencies)
                    query[head, :, axis, number] = length * torch.tensor(
                        (math.cos(angle), math.sin(angle))
                    )
                    key[head, :, axis, number] = length * torch.tensor((1.0, 0.0))

    def forward(self, rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        query, key, value = self.qkv(rows).unflatten(-1, (3, self.num_heads, -1)).unbind(2)
        query, key = rotate(query, cos, sin).to(value.dtype), rotate(key, cos, sin).to(value.dtype)
        mixed = attend(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
        return self.proj(mixed.transpose(1, 2).flatten(2))


def offsets_of(block: int, sizes: VisionSizes) -> tuple[tuple[int, int], ...]:
    """Returns what the heads of a block look at in the beginning; the last block's see everything alike."""
    if block == sizes.depth - 1:
        return ()
    if block == sizes.depth - 2:
        return FAR[: sizes.num_heads - 2]
    turned = NEAR[4 * block % len(NEAR) :] + NEAR
    return turned[: sizes.num_heads]


class VisionMlp(nn.Module):
    def __init__(self, sizes: VisionSizes) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(sizes.hidden_size, sizes.intermediate_size)
        self.linear_fc2 = nn.Linear(sizes.intermediate_size, sizes.hidden_size)

    def forward(self, rows: Tensor) -> Tensor:
        return self.linear_fc2(functional.gelu(self.linear_fc1(rows), approximate="tanh"))


class VisionBlock(nn.Module):
    def __init__(self, sizes: VisionSizes) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(sizes.hidden_size, EPS)
        self.norm2 = nn.LayerNorm(sizes.hidden_size, EPS)
        self.attn = VisionAttention(sizes)
        self.mlp = VisionMlp(sizes)

    def forward(self, rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rows = rows + self.attn(self.norm1(rows), cos, sin)
        return rows + self.mlp(self.norm2(rows))


class Merger(nn.Module):
    def __init__(self, sizes: VisionSizes, out_size: int) -> None:
        super().__init__()
        merged = sizes.hidden_size * MERGE**2
        self.norm = nn.LayerNorm(sizes.hidden_size, EPS)
        self.linear_fc1 = nn.Linear(merged, merged)
        self.linear_fc2 = nn.Linear(merged, out_size)

    def forward(self, rows: Tensor) -> Tensor:
        squares = self.norm(rows).unflatten(1, (-1, MERGE**2)).flatten(2)
        return self.linear_fc2(functional.gelu(self.linear_fc1(squares)))


class PatchEmbed(nn.Module):
    """Its kernel sees one frame; a published one sees two, which a picture fills with itself twice (see export.py)."""

    def __init__(self, sizes: VisionSizes) -> None:
        super().__init__()
        self.proj = nn.Linear(3 * PATCH**2, sizes.hidden_size)

    def forward(self, patches: Tensor) -> Tensor:
        return self.proj(patches)


class Encoder(nn.Module):
    def __init__(self, sizes: VisionSizes, out_size: int) -> None:
        super().__init__()
        self.head_dim = sizes.head_dim
        self.patch_embed = PatchEmbed(sizes)
        self.pos_embed = nn.Embedding(sizes.positions_side**2, sizes.hidden_size)
        self.blocks = nn.ModuleList(VisionBlock(sizes) for _ in range(sizes.depth))
        self.merger = Merger(sizes, out_size)
        for number, block in enumerate(self.blocks):
            block.attn.look_at(offsets_of(number, sizes))

    def forward(self, pictures: Pictures) -> Tensor:
        """Returns features [pictures * tokens, out_size]."""
        cos, sin = turns_of(*pictures.grid, self.head_dim)
        rows = self.patch_embed(patches_of(pictures)) + stretched(
            self.pos_embed.weight, *pictures.grid
        )
        for block in self.blocks:
            rows = block(rows, cos, sin)
        return self.merger(rows).flatten(0, 1)
