"""Assigns frequencies to the three positions of a token in an image: time, row, column (M-RoPE).

In a text all three positions are equal, so that the assignment has no effect. Reference: Qwen2-VL
(Wang 2024); interleaved since Qwen3-VL.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.rope import Rope
from ouzel.checkpoint.context_length import rope_section
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


def with_axes(
    rope: Rope, config: HfConfig, default: tuple[int, int, int], *, are_interleaved: bool = False
) -> Rope:
    """Returns the rope with axes; `mrope_section` has the number of frequencies of each axis.

    Raises ModelLoadError if their sum is not the number of frequencies.
    """
    section, num = rope_section(config), len(rope.inverse_frequencies)
    counts = section.integers("mrope_section", 3) if section.has("mrope_section") else [*default]
    if min(counts) < 0 or sum(counts) != num:
        raise ModelLoadError(
            f"config.json: mrope_section must be three numbers with the sum {num}, found {counts}"
        )
    if not are_interleaved:
        return replace(
            rope, axes=tuple(axis for axis, count in enumerate(counts) for _ in range(count))
        )
    axes = [0] * num
    for axis in (1, 2):
        for place in range(axis, min(3 * counts[axis], num), 3):
            axes[place] = axis
    return replace(rope, axes=tuple(axes))
