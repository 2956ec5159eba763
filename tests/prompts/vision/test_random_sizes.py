"""A layout, computed from the size of a picture, agrees with the tiles of the picture."""

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from PIL import Image

from ouzel.prompts.vision.base import Detail
from tests.prompts.vision.checkpoints import golden, loaded

# Takes the shape of the tiles and the picture's width and height; returns the number of tokens.
Expected = Callable[[Sequence[int], int, int], int]


def pinpoints(side: int) -> list[tuple[int, int]]:
    """Returns resolutions of one to three tiles in each direction."""
    return [(side * down, side * across) for down in (1, 2, 3) for across in (1, 2, 3)]


# Settings that make a family's image processor small, and the number of tokens of its tiles
SMALL: dict[str, tuple[dict[str, object], Expected]] = {
    "qwen2_vl": (
        {"min_pixels": 3136, "max_pixels": 60_000},
        lambda shape, *_: shape[1] // 28 * (shape[2] // 28),
    ),
    "qwen2_5_vl": (
        {"size": {"longest_edge": 50_000}},
        lambda shape, *_: shape[1] // 28 * (shape[2] // 28),
    ),
    "llava": ({"size": 56, "crop_size": 42}, lambda shape, *_: shape[1] // 14 * (shape[2] // 14)),
    "llava_padded": (
        {"size": {"shortest_edge": 28}, "crop_size": 28},
        lambda shape, *_: shape[1] // 14 * (shape[2] // 14),
    ),
    "llava_siglip": (
        {"size": {"height": 28, "width": 42}},
        lambda shape, *_: shape[1] // 14 * (shape[2] // 14),
    ),
    "pixtral": (
        {"size": {"longest_edge": 200}},
        lambda shape, *_: shape[1] // 16 * (shape[2] // 16),
    ),
    "mistral3": ({"size": 200}, lambda shape, *_: shape[1] // 28 * (shape[2] // 28)),
    "smolvlm": (
        {"size": {"longest_edge": 100}, "max_image_size": {"longest_edge": 32}},
        lambda shape, *_: shape[0] * 64,
    ),
    "idefics3": (
        {"size": {"longest_edge": 128}, "max_image_size": {"longest_edge": 32}},
        lambda shape, *_: shape[0] * 169,
    ),
    "gemma3": ({"size": {"height": 28, "width": 28}}, lambda shape, *_: shape[0] * 256),
    "gemma3_pan_and_scan": ({"pan_and_scan_min_crop_size": 50}, lambda shape, *_: shape[0] * 16),
    "internvl": ({"size": {"height": 28, "width": 28}}, lambda shape, *_: shape[0] * 256),
    "glm_ocr": (
        {"size": {"shortest_edge": 3136, "longest_edge": 120_000}},
        lambda shape, *_: shape[1] // 28 * (shape[2] // 28),
    ),
    "paddleocr_vl": (
        {"min_pixels": 3136, "max_pixels": 60_000},
        lambda shape, *_: shape[1] // 28 * (shape[2] // 28),
    ),
    "lfm2_vl": (
        {"tile_size": 64, "min_image_tokens": 2, "max_image_tokens": 9, "max_tiles": 7},
        lambda shape, *_: shape[0] * (shape[1] // 32) * (shape[2] // 32),
    ),
    "minicpmv": (
        {"scale_resolution": 100, "max_slice_nums": 6},
        lambda shape, *_: shape[0] * 64,
    ),
    "minicpmv4_6": (
        {"scale_resolution": 150, "max_slice_nums": 6},
        lambda shape, *_: shape[0] * (shape[1] // 56) * (shape[2] // 56),
    ),
    "llava_next": (
        {"size": 28, "crop_size": 28, "image_grid_pinpoints": pinpoints(28)},
        lambda shape, width, height: packed_tokens(shape, width, height, patches=2, base=4),
    ),
    "granite4_vision": (
        {"size": 64, "crop_size": 64, "image_grid_pinpoints": pinpoints(64)},
        lambda shape, width, height: packed_tokens(
            shape, width, height, patches=2, base=4, side=64
        ),
    ),
    "llava_onevision": (
        {"size": 28, "image_grid_pinpoints": pinpoints(28)},
        lambda shape, width, height: packed_tokens(shape, width, height, patches=27, base=729),
    ),
    "gemma4": ({"max_soft_tokens": 140}, lambda shape, *_: shape[1] // 48 * (shape[2] // 48)),
}


def packed_tokens(
    shape: Sequence[int], width: int, height: int, *, patches: int, base: int, side: int = 28
) -> int:
    """Counts the features as the models pack them: without borders, with a mark after each row."""
    if shape[0] == 1:
        return base + 1
    used = {size: used_pixels(size, width, height) for size in pinpoints(side)}
    most = max(used.values())
    best = min((size for size in used if used[size] == most), key=math.prod)
    assert shape[0] == 1 + best[0] // side * (best[1] // side)
    rows, columns = best[0] // side * patches, best[1] // side * patches
    if width / height > columns / rows:
        border = (rows - int(round(height * (columns / width), 7))) // 2
        return base + (rows - 2 * border) * (columns + 1)
    border = (columns - int(round(width * (rows / height), 7))) // 2
    return base + rows * (columns - 2 * border + 1)


def used_pixels(size: tuple[int, int], width: int, height: int) -> int:
    scale = min(size[1] / width, size[0] / height)
    return min(int(width * scale) * int(height * scale), width * height)


def random_sizes(seed: str) -> list[tuple[int, int]]:
    generator = random.Random(seed)
    sizes = [
        (int(2 ** generator.uniform(0, 10)), int(2 ** generator.uniform(0, 10))) for _ in range(400)
    ]
    return [size for size in sizes if max(size) <= 200 * min(size)][:200]


@pytest.mark.parametrize("family", SMALL)
def test_a_layout_counts_the_tokens_of_the_tiles(family: str, tmp_path: Path) -> None:
    changes, expected_tokens = SMALL[family]
    files = golden(family)["files"]
    files["preprocessor_config.json"] |= changes
    processor = loaded(tmp_path, files)
    sizes = random_sizes(family)
    assert len(sizes) == 200
    details: tuple[Detail, ...] = ("auto", "low")
    for index, (width, height) in enumerate(sizes):
        detail = details[index % 4 == 0]
        pieces = processor.pieces(Image.new("RGB", (width, height)), detail)
        layout = processor.layout(width, height, detail)
        counts = [expected_tokens(tiles.shape, width, height) for tiles in pieces]
        assert counts == [*(layout.piece_tokens or (layout.num_tokens,))], (width, height)
        assert layout.num_tokens == sum(counts)
        assert layout.text.count(processor.feature_token) == layout.num_tokens
        if layout.position_grid is not None:
            assert math.prod(layout.position_grid) == layout.num_tokens
