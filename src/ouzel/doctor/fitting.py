"""Estimates which models fit into memory, and the highest speed for one user, from their sizes."""

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Width = Literal["int4", "int8", "bf16"]

# Bytes of a weight; int4 in groups with scales, as measured on stored checkpoints.
WEIGHT_BYTES: dict[Width, float] = {"int4": 0.56, "int8": 1.0, "bf16": 2.0}
OUTER_BYTES: dict[Width, float] = {"int4": 1.0, "int8": 1.0, "bf16": 2.0}  # embedding and head
CONTEXT_TOKENS = 8192
CACHE_BYTES = 1.1  # a value of the KV cache in u8, with its share of the scales
PROGRAM_BYTES = 800 * 10**6  # both processes, without weights and cache


@dataclass(frozen=True, slots=True)
class CommonModel:
    """A common model size; numbers of parameters are in billions."""

    size: str
    example: str
    layers: float
    active_layers: float  # parameters of the layers that compute one token
    embedding: float  # parameters of the embedding; the head is the same matrix or as large
    has_own_head: bool
    cache_elements: int  # values of keys and values of one token


COMMON_MODELS = (
    CommonModel("0.6B", "Qwen3-0.6B", 0.44, 0.44, 0.156, False, 57_344),
    CommonModel("1.7B", "Qwen3-1.7B", 1.41, 1.41, 0.311, False, 57_344),
    CommonModel("4B", "Qwen3-4B", 3.63, 3.63, 0.389, False, 73_728),
    CommonModel("8B", "Qwen3-8B", 6.95, 6.95, 0.622, True, 73_728),
    CommonModel("14B", "Qwen3-14B", 13.2, 13.2, 0.778, True, 81_920),
    CommonModel("32B", "Qwen3-32B", 31.2, 31.2, 0.778, True, 131_072),
    CommonModel("70B", "Llama-3.3-70B", 68.5, 68.5, 1.05, True, 163_840),
    CommonModel("20B-A3.6B", "gpt-oss-20b", 19.7, 3.0, 0.579, True, 24_576),
    CommonModel("30B-A3B", "Qwen3-30B-A3B", 29.9, 2.7, 0.311, True, 49_152),
    CommonModel("117B-A5B", "gpt-oss-120b", 115.7, 4.5, 0.579, True, 36_864),
)


class Fit(Enum):
    YES = "fits"
    IF_FREED = "if memory is freed"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Estimate:
    model: CommonModel
    width: Width
    needed_bytes: int  # memory with a context of CONTEXT_TOKENS
    fit: Fit
    tokens_per_s: float  # upper bound for one user


def estimates(available_bytes: int, limit_bytes: int, gb_per_s: float) -> list[Estimate]:
    """Estimates every model in every width, for the free memory and the memory limit."""
    return [
        _estimate(model, width, available_bytes, limit_bytes, gb_per_s)
        for model in COMMON_MODELS
        for width in WEIGHT_BYTES
    ]


def _estimate(
    model: CommonModel, width: Width, available_bytes: int, limit_bytes: int, gb_per_s: float
) -> Estimate:
    outer = model.embedding * OUTER_BYTES[width]
    weights = model.layers * WEIGHT_BYTES[width] + outer * (2 if model.has_own_head else 1)
    read = model.active_layers * WEIGHT_BYTES[width] + outer  # the embedding is read only by rows
    needed = (
        int(weights * 1e9)
        + int(model.cache_elements * CACHE_BYTES * CONTEXT_TOKENS)
        + PROGRAM_BYTES
    )
    fit = (
        Fit.YES if needed <= available_bytes else Fit.IF_FREED if needed <= limit_bytes else Fit.NO
    )
    return Estimate(model, width, needed, fit, gb_per_s / read)
