"""Computes the angles of rotary position embeddings on the host, in float64, for every variant.

The model graph takes cos and sin of the scheduled positions as inputs, so positions never pass
through bf16 (a graph that computes them itself may be wrong by a quarter at position 4,000).
Formulas: transformers, `modeling_rope_utils.py`; papers: linear (Chen 2023), YaRN (Peng 2023),
llama3 (Llama 3.1 release), LongRoPE (Ding 2024).

config.json writes the variant as `rope_scaling` + `rope_theta` (transformers 4) or as
`rope_parameters` (5).
"""

import logging
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ouzel.checkpoint.context_length import (
    original_positions,
    read_max_positions,
    rope_section,
    rope_type,
)
from ouzel.checkpoint.hf_config import MAX_SIZE, HfConfig
from ouzel.errors import ModelLoadError

SUPPORTED = ("default", "linear", "dynamic", "llama3", "yarn", "longrope")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LongFrequencies:
    """The frequencies of LongRoPE for contexts of more than `original_positions` tokens."""

    original_positions: int
    inverse_frequencies: NDArray[np.float64]
    scale: float


@dataclass(frozen=True)
class Rope:
    """Turns positions into cos and sin."""

    inverse_frequencies: NDArray[np.float64]  # [rotated dimensions of a head / 2]
    scale: float  # factor of cos and sin: the attention factor of YaRN and LongRoPE, else 1
    max_positions: int  # the model's own limit
    beyond: LongFrequencies | None = None  # None after `for_context` has chosen the frequencies
    # For each frequency, the axis of its position among three; None: there is one position.
    axes: tuple[int, ...] | None = None

    @property
    def default_positions(self) -> int:
        """Returns the longest context that the usual frequencies serve; for LongRoPE the original
        context.
        """
        if self.beyond is None:
            return self.max_positions
        return min(self.beyond.original_positions, self.max_positions)

    def for_context(self, max_model_len: int) -> "Rope":
        """Returns the rope with the frequencies for requests of up to `max_model_len` tokens.

        Transformers chooses by the tokens that a sequence has so far. In a server all requests use
        the same frequencies, because cached keys are rotated already, and other requests read them.
        """
        if self.beyond is None:
            return self
        is_long = max_model_len > self.beyond.original_positions
        if is_long:
            logger.info(
                "LongRoPE: max_model_len is %d, so all requests use the long factors; with a "
                "max_model_len up to %d they would use the short factors, which answer short "
                "requests better",
                max_model_len,
                self.beyond.original_positions,
            )
        else:
            logger.info(
                "LongRoPE: max_model_len is %d, so all requests use the short factors; a larger "
                "--max-model-len, up to %d, uses the long factors",
                max_model_len,
                self.max_positions,
            )
        if not is_long:
            return replace(self, beyond=None)
        return replace(
            self,
            inverse_frequencies=self.beyond.inverse_frequencies,
            scale=self.beyond.scale,
            beyond=None,
        )

    def cos_sin(
        self, positions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns cos and sin, each [T, rotated dimensions / 2], for positions [T] or [3, T]."""
        assert self.beyond is None, "for_context is called before"
        if positions.ndim > 1:
            assert self.axes is not None, "only a model with axes gets three positions a token"
            angles = np.multiply(positions[list(self.axes)].T, self.inverse_frequencies, order="C")
        else:
            angles = positions[:, None] * self.inverse_frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        if self.scale != 1.0:
            cos, sin = cos * self.scale, sin * self.scale
        return cos.astype(np.float32), sin.astype(np.float32)


def read_rope(config: HfConfig, head_dim: int, *, rotates_partly: bool = False) -> Rope:
    """Reads the rope of config.json.

    Only a family that `rotates_partly` supports `partial_rotary_factor`, the share of each head
    that is rotated. Raises ModelLoadError also if the angles cannot be computed although each
    number is possible.
    """
    num_dims = rotated_dims(config, head_dim, rotates_partly=rotates_partly)
    try:
        with np.errstate(all="ignore"):
            rope = compute_rope(config, num_dims)
    except (ArithmeticError, ValueError) as error:
        raise ModelLoadError(
            f"{config.source}: the rotary positions cannot be computed: {error}"
        ) from error
    frequencies = [rope.inverse_frequencies]
    if rope.beyond:
        frequencies.append(rope.beyond.inverse_frequencies)
    if not (np.isfinite(frequencies).all() and math.isfinite(rope.scale)):
        raise ModelLoadError(
            f"{config.source}: the rotary positions cannot be computed: they are not finite"
        )
    if rope.max_positions > MAX_SIZE:
        raise ModelLoadError(
            f"{config.source}: the rotary positions must be <= {MAX_SIZE}, found "
            f"{rope.max_positions}"
        )
    return rope


def read_ropes_by_kind(
    config: HfConfig, head_dim: int, *, sliding_theta: float
) -> tuple[Rope, Rope]:
    """Returns the ropes of layers with full attention and of layers with a window.

    `rope_parameters` has a section for each kind; the older `rope_theta` and `rope_scaling` belong
    to full attention only.
    """
    sections = config.section("rope_parameters") or HfConfig(
        {"full_attention": config.values.get("rope_scaling")}
    )

    def rope(kind: str, theta: float) -> Rope:
        section = sections.section(kind) or HfConfig({})
        parameters = section.with_defaults(rope_theta=theta).values
        return read_rope(
            config.with_values(rope_parameters=parameters, rope_scaling=None), head_dim
        )

    full_theta = config.number("rope_theta", 10000.0)
    return rope("full_attention", full_theta), rope("sliding_attention", sliding_theta)


def rotated_dims(config: HfConfig, head_dim: int, *, rotates_partly: bool) -> int:
    """Returns the number of rotated dimensions of a head, the first ones."""
    if head_dim % 2:
        raise ModelLoadError(f"{config.source}: head_dim must be even, found {head_dim}")
    share = rope_section(config).number(
        "partial_rotary_factor", config.number("partial_rotary_factor", 1.0)
    )
    if share != 1.0 and not rotates_partly:
        raise ModelLoadError(
            f"{config.source}: partial_rotary_factor {share} is not supported, only 1"
        )
    num_dims = int(head_dim * share)
    if num_dims % 2 or not 0 < num_dims <= head_dim:
        raise ModelLoadError(
            f"{config.source}: partial_rotary_factor must leave an even number of the {head_dim} "
            f"dimensions of a head, found {share}"
        )
    return num_dims


def compute_rope(config: HfConfig, num_dims: int) -> Rope:
    scaling, theta = rope_section(config), rope_theta(config)
    max_positions, original = read_max_positions(config), original_positions(config)
    plain = plain_frequencies(theta, num_dims)
    match rope_type(scaling):
        case "default" | "mrope":  # "mrope" has a position for each axis (rope_axes.py)
            return Rope(plain, 1.0, max_positions)
        case "dynamic":
            return Rope(
                plain_frequencies(dynamic_theta(theta, scaling, num_dims), num_dims),
                1.0,
                max_positions,
            )
        case "linear":
            return Rope(plain / scaling.number("factor"), 1.0, max_positions)
        case "llama3":
            return Rope(llama3_frequencies(plain, scaling, original), 1.0, max_positions)
        case "yarn":
            default_factor = config.size("max_position_embeddings") / original
            factor = scaling.number("factor", default_factor)
            scaled = yarn_frequencies(plain, theta, scaling, original, factor)
            return Rope(scaled, yarn_scale(scaling, factor), max_positions)
        case "longrope" | "su":  # "su" is the older name
            return longrope(plain, scaling, original, max_positions)
        case unknown:
            raise ModelLoadError(
                f"{config.source}: rope type {unknown} is not supported; supported: "
                f"{', '.join(SUPPORTED)}"
            )


def rope_theta(config: HfConfig) -> float:
    theta = rope_section(config).number("rope_theta", config.number("rope_theta", 10000.0))
    if theta <= 0:
        raise ModelLoadError(f"{config.source}: rope_theta must be > 0, found {theta}")
    return theta


def plain_frequencies(theta: float, num_dims: int) -> NDArray[np.float64]:
    frequencies: NDArray[np.float64] = theta ** -(
        np.arange(0, num_dims, 2, dtype=np.float64) / num_dims
    )
    return frequencies


def dynamic_theta(theta: float, scaling: HfConfig, num_dims: int) -> float:
    """Returns the base of the frequencies in Hunyuan's form, with `alpha`.

    Without `alpha` the base changes only beyond max_position_embeddings, which Ouzel does not
    serve. Reference: transformers, models/hunyuan_v1_dense/modeling_hunyuan_v1_dense.py.
    """
    alpha = scaling.number("alpha", 0.0)
    if alpha < 0:
        raise ModelLoadError(
            f"{scaling.source}: alpha of the rotary positions must be >= 0, found {alpha}"
        )
    return theta * alpha ** (num_dims / (num_dims - 2)) if alpha else theta


def llama3_frequencies(
    plain: NDArray[np.float64], scaling: HfConfig, original: int
) -> NDArray[np.float64]:
    """Divides the frequencies of long waves by the factor, keeps short waves, and blends in
    between.
    """
    factor = scaling.number("factor")
    low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
    turns = original * plain / (2 * math.pi)  # rotations in the original context, by frequency
    kept_share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - kept_share) * plain / factor + kept_share * plain


def yarn_frequencies(
    plain: NDArray[np.float64], theta: float, scaling: HfConfig, original: int, factor: float
) -> NDArray[np.float64]:
    """Divides slow frequencies by the factor.

    Frequencies that rotate often in the original context stay.
    """
    dimensions = 2 * len(plain)

    def dimension_with_turns(turns: float) -> float:
        return dimensions * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = dimension_with_turns(scaling.number("beta_fast", 32.0))
    high = dimension_with_turns(scaling.number("beta_slow", 1.0))
    if scaling.flag("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dimensions - 1)
    interpolated = np.clip((np.arange(len(plain)) - low) / max(high - low, 0.001), 0.0, 1.0)
    frequencies: NDArray[np.float64] = plain / factor * interpolated + plain * (1 - interpolated)
    return frequencies


def yarn_scale(scaling: HfConfig, factor: float) -> float:
    def mscale(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    if scaling.has("attention_factor"):
        return scaling.number("attention_factor")
    weight, weight_all = scaling.number("mscale", 0.0), scaling.number("mscale_all_dim", 0.0)
    return mscale(weight) / mscale(weight_all) if weight and weight_all else mscale(1.0)


def longrope(
    plain: NDArray[np.float64], scaling: HfConfig, original: int, max_positions: int
) -> Rope:
    """Divides each frequency by a factor of its own: of `short_factor` within the original
    context.
    """
    short, long = (
        plain / np.array(scaling.numbers(key, len(plain)))
        for key in ("short_factor", "long_factor")
    )
    factor = scaling.number("factor", max_positions / original)
    usual = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
    scale = scaling.number("attention_factor", usual)
    # Phi-3.5-MoE has a scale for each list of factors.
    short_scale, long_scale = (
        scaling.number(key, scale) for key in ("short_mscale", "long_mscale")
    )
    # GGUF files of Llama 3 are read this way: one list of factors serves every context.
    if np.array_equal(short, long) and short_scale == long_scale:
        return Rope(short, short_scale, max_positions)
    beyond = LongFrequencies(original, long, long_scale)
    return Rope(short, short_scale, max_positions, beyond)
