"""Writes gguf_grids.npz, the grids of GGUF's block types, from llama.cpp's package gguf. See README.md."""

from pathlib import Path

import numpy as np
from gguf import quants

GRIDS = Path(__file__).parents[2] / "src/ouzel/backends/openvino/weights/gguf_grids.npz"
NAMES = ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")


def main() -> None:
    arrays = {}
    for name in NAMES:
        kind = getattr(quants, name)
        kind.init_grid()
        values = kind.grid.reshape(kind.grid_shape).astype(np.int8)
        levels, numbers = np.unique(values, return_inverse=True)
        numbers = numbers.reshape(values.shape).astype(np.uint8)
        arrays[name] = numbers[:, ::2] | numbers[:, 1::2] << 4
        arrays[f"{name}.levels"] = levels
    np.savez_compressed(GRIDS, **arrays)


if __name__ == "__main__":
    main()
