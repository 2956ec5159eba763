"""Tests images whose shapes contradict config.json: the encoder refuses them."""

import math
from typing import Any

import msgspec
import pytest

from ouzel.errors import EngineFailed
from tests.backends.conftest import Load
from tests.backends.vision_golden import encode_image, read_vision_golden

# Each case: the checkpoint, the fields that replace the image processor's, and the error.
Case = tuple[str, dict[str, Any], str]  # Any: fields of ImageInput


def make_black_image(*shape: int) -> dict[str, Any]:
    """Returns fields of a black image; the shape is tiles, height and width."""
    return {"shape": shape, "pixels": bytes(3 * math.prod(shape))}


CASES: dict[str, Case] = {
    "llava-another tile": ("llava", make_black_image(1, 20, 20), "image_size 23 .* made 20x20"),
    "llava-more tokens than rows": (
        "llava",
        {"runs": ((0, 26),)},
        "25 rows of features for 26 tokens",
    ),
    "llava_next-tiles of another resolution": (
        "llava_next",
        {"size": (28, 28)},
        "28x28 must have 4 tiles .* processor made 3",
    ),
    "paligemma-another tile": (
        "paligemma",
        make_black_image(1, 20, 20),
        "image_size 18 .* made 20x20",
    ),
    "mistral3-half a row of features": (
        "mistral3",
        make_black_image(1, 8, 12),
        "multiples of 8, found 8x12",
    ),
    "gemma4-half a patch": (
        "gemma4",
        make_black_image(1, 12, 20),
        "the sides of images must be multiples of 12 and <= 1024, found 12x20",
    ),
    "gemma4-a long side": (
        "gemma4",
        make_black_image(1, 12, 1032),
        "the sides of images must be multiples of 12 and <= 1024, found 12x1032",
    ),
    "gemma4-more tokens than the sliding window": (
        "gemma4",
        make_black_image(1, 60, 48),
        "images must have <= 16 tokens, the sliding_window, found 20",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_image_that_contradicts_config_json_is_refused(case: str, load: Load) -> None:
    name, fields, message = CASES[case]
    golden = read_vision_golden(name)
    image = golden.image(0, ((0, golden.num_rows(0)),))
    with pytest.raises(EngineFailed, match=message):
        encode_image(load(golden.directory), msgspec.structs.replace(image, **fields))
