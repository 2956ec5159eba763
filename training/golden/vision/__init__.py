"""What golden checkpoints that see are made of: a file for each kind of vision encoder, each with its CASES."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Pixels = NDArray[np.float32]  # [tiles, 3, height, width]
Shape = tuple[int, int, int]  # tiles, height, width

IMAGE_TOKEN = 7  # of all cases; texts have larger ids


@dataclass(frozen=True)
class VisionCase:
    """A checkpoint; its text_config completes BASE."""

    settings: dict[str, Any]  # Any: as transformers has them
    pictures: tuple[Shape, ...]  # four of them
    inputs: Callable[
        [list[Pixels], list[tuple[int, int]]], dict[str, torch.Tensor]
    ]  # of pixels and sizes, as forward() takes them
    num_rows: Callable[
        [Shape, tuple[int, int]], int
    ]  # of features, of a picture with these tiles and this size
    sizes: tuple[
        tuple[int, int], ...
    ] = ()  # height and width before the cut into tiles; empty: those of the tiles
    grid: Callable[[Shape], tuple[int, int, int]] | None = None  # of positions
    types_name: str = ""  # of what forward() takes to tell tokens of pictures from others; empty: it knows by their ids
    # forward() has type 0 for tokens of the prompt, which attend to each other, and 1 for the output
    reads_prompts_both_ways: bool = False
    # tokens of text behind so many of a picture's, as a break behind each line; 0: none
    spaced: int = 0
    published: dict[str, Any] = field(
        default_factory=dict
    )  # what config.json has instead; None takes a key away
    factors: dict[str, float] = field(default_factory=dict)  # of weights, by a part of their names
    first_seed: int = 0
    # of the settings, for a family that transformers has not
    make_model: Callable[[dict[str, Any]], Any] | None = None
    # Beginnings of the names of tensors that the reference makes and does not use; the file lacks them.
    unused: tuple[str, ...] = ()

    def size(self, number: int) -> tuple[int, int]:
        return self.sizes[number] if self.sizes else self.pictures[number][1:]
