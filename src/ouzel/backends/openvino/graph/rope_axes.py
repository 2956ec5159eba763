"""Of a model that sees, each frequency turns by one of three positions: time, row or column (M-RoPE).

In a text all three are equal, so that nothing changes. Reference: Qwen2-VL (Wang 2024); interleaved since Qwen3-VL.
"""

from dataclasses import replace

from ouzel.backends.openvino.graph.rope import Rope
from ouzel.checkpoint.context_length import rope_section
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


def with_axes(
    rope: Rope, config: HfConfig, default: tuple[int, int, int], *, are_interleaved: bool = False
) -> Rope:
    """Reads how many frequencies each axis has from `mrope_section`.

    Raises ModelLoadError where these are not as many as there are.
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
