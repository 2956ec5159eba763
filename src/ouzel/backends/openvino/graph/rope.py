"""Rotary position embedding has its angles computed on the host, in float64, for every variant.

The model graph takes cos and sin of the scheduled positions as inputs, so positions never pass through bf16 (a graph
that computes them itself may be wrong by a quarter at position 4,000). Formulas: transformers,
`modeling_rope_utils.py`; papers: linear (Chen 2023), YaRN (Peng 2023), llama3 (Llama 3.1 release).

config.json writes the variant as `rope_scaling` + `rope_theta` (transformers 4) or as `rope_parameters` (5).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.hf_config import MAX_SIZE, HfConfig
from ouzel.errors import ModelLoadError

SUPPORTED = ("default", "linear", "dynamic", "llama3", "yarn")


@dataclass(frozen=True)
class Rope:
    """It turns positions into cos and sin."""

    inverse_frequencies: NDArray[np.float64]  # [head_dim / 2]
    scale: float  # of cos and sin: YaRN's attention factor, else 1
    max_positions: int  # as far as the model can go

    def cos_sin(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns cos and sin, each [T, head_dim / 2]."""
        angles = positions[:, None] * self.inverse_frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        if self.scale != 1.0:
            cos, sin = cos * self.scale, sin * self.scale
        return cos.astype(np.float32), sin.astype(np.float32)


def read_rope(config: HfConfig, head_dim: int, default_theta: float = 10000.0) -> Rope:
    """Raises ModelLoadError also where the numbers are each possible and the angles they come to are not."""
    if head_dim % 2:
        raise ModelLoadError(f"config.json: head_dim must be even, found {head_dim}")
    try:
        with np.errstate(all="ignore"):
            rope = compute_rope(config, head_dim, default_theta)
    except (ArithmeticError, ValueError) as error:
        raise ModelLoadError(f"config.json: the rotary positions cannot be computed: {error}") from error
    if not (np.isfinite(rope.inverse_frequencies).all() and math.isfinite(rope.scale)):
        raise ModelLoadError("config.json: the rotary positions cannot be computed: they are no finite numbers")
    if rope.max_positions > MAX_SIZE:
        raise ModelLoadError(f"config.json: the rotary positions must be <= {MAX_SIZE}, found {rope.max_positions}")
    return rope


def compute_rope(config: HfConfig, head_dim: int, default_theta: float) -> Rope:
    scaling = config.section("rope_parameters") or config.section("rope_scaling") or HfConfig({})
    theta = scaling.number("rope_theta", config.number("rope_theta", default_theta))
    max_positions = config.size("max_position_embeddings")
    if (rotated := scaling.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))) != 1.0:
        raise ModelLoadError(f"config.json: partial_rotary_factor {rotated} is not supported, only 1")
    if theta <= 0:
        raise ModelLoadError(f"config.json: rope_theta must be > 0, found {theta}")
    plain = theta ** -(np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    match rope_type(scaling):
        case "default":
            return Rope(plain, 1.0, max_positions)
        case "dynamic":  # changes the frequencies only beyond max_position_embeddings, where we do not go
            return Rope(plain, 1.0, max_positions)
        case "linear":
            return Rope(plain / scaling.number("factor"), 1.0, max_positions)
        case "llama3":
            return Rope(llama3_frequencies(plain, scaling, max_positions), 1.0, max_positions)
        case "yarn":
            return yarn_rope(plain, theta, scaling, max_positions)
        case unknown:
            raise ModelLoadError(
                f"config.json: rope type {unknown} is not supported; supported: {', '.join(SUPPORTED)}"
            )


def rope_type(scaling: HfConfig) -> str:
    """Reads `type` too, the key's older name."""
    return scaling.text("rope_type", scaling.text("type", "default"))


def llama3_frequencies(plain: NDArray[np.float64], scaling: HfConfig, max_positions: int) -> NDArray[np.float64]:
    """Divides long waves by the factor, keeps short ones, and blends those between."""
    factor = scaling.number("factor")
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    original = scaling.size("original_max_position_embeddings", max_positions)
    turns = original * plain / (2 * math.pi)  # of each frequency within the original context
    kept_share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - kept_share) * plain / factor + kept_share * plain


def yarn_rope(plain: NDArray[np.float64], theta: float, scaling: HfConfig, max_positions: int) -> Rope:
    """Keeps dimensions that turn often within the original context, and divides slow ones by the factor."""
    original = scaling.size("original_max_position_embeddings", max_positions)
    factor = scaling.number("factor", max_positions / original)
    dimensions = 2 * len(plain)

    def dimension_with_turns(turns: float) -> float:
        return dimensions * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = dimension_with_turns(scaling.number("beta_fast", 32.0))
    high = dimension_with_turns(scaling.number("beta_slow", 1.0))
    if scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dimensions - 1)
    interpolated = np.clip((np.arange(len(plain)) - low) / max(high - low, 0.001), 0.0, 1.0)
    frequencies = plain / factor * interpolated + plain * (1 - interpolated)
    return Rope(frequencies, yarn_scale(scaling, factor), max(max_positions, int(original * factor)))


def yarn_scale(scaling: HfConfig, factor: float) -> float:
    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    if scaling.has("attention_factor"):
        return scaling.number("attention_factor")
    weight, weight_all = scaling.number("mscale", 0.0), scaling.number("mscale_all_dim", 0.0)
    return mscale(weight) / mscale(weight_all) if weight and weight_all else mscale(1.0)
