"""Reads golden checkpoints with vision encoders: prompts, images, expected values.

training/golden/make_vision.py wrote them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.engine.base import ImageRunner, ModelRunner
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput
from tests.backends import of_kinds
from tests.engine.requests import make_request

GOLDEN = Path(__file__).parent / "golden_vision"
NAMES = sorted(path.name for path in GOLDEN.iterdir())
IMAGE_TOKEN = 7

# A checkpoint for each way of placing image tokens in a prompt and of numbering positions.
KINDS = ["gemma3", "llava_next", "minicpmv-llama", "minicpmv4_6", "mistral3", "qwen2_5_vl"]
KINDS += ["qwen3_5", "qwen3_vl", "smolvlm"]
OF_KINDS = of_kinds("chunks and caches of other families that see", NAMES, KINDS)
OF_TWO_KINDS = of_kinds("precision of other families that see", NAMES, ["gemma3", "qwen3_vl"])


@dataclass(frozen=True)
class VisionGolden:
    """A checkpoint with a vision encoder, four images, and prompts with one, two and four images.

    The arrays also have the values that transformers computes.
    """

    directory: Path
    arrays: dict[str, NDArray[Any]]  # element types differ

    def prompt(self, count: int) -> list[int]:
        return [int(each) for each in self.arrays[f"prompt.{count}"]]

    def images(self, count: int) -> tuple[ImageInput, ...]:
        """Returns the first `count` images, with their places in the prompt of `count` images."""
        places = np.flatnonzero(self.arrays[f"prompt.{count}"] == IMAGE_TOKEN)
        images, begin = [], 0
        for number in range(count):
            end = begin + self.num_rows(number)
            images.append(self.image(number, find_runs(places[begin:end])))
            begin = end
        assert begin == len(places)
        return tuple(images)

    def num_rows(self, number: int) -> int:
        """Returns the number of rows of features that the image has."""
        return int(self.arrays["num_rows"][number])

    def image(self, number: int, runs: tuple[tuple[int, int], ...]) -> ImageInput:
        """Returns the image; `runs` has the begin and the length of each run of its tokens."""
        pixels = self.arrays[f"picture.{number}"]
        grids = self.arrays.get("grids")
        num_tiles, height, width, _ = pixels.shape
        original_height, original_width = (int(each) for each in self.arrays["sizes"][number])
        return ImageInput(
            digest=bytes([number] * 16),
            runs=runs,
            shape=(num_tiles, height, width),
            pixels=pixels.tobytes(),
            rescale=1 / 255,
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            size=(original_height, original_width),
            position_grid=None if grids is None else read_grid(grids[number]),
        )

    # Any: the fields of make_request
    def request(self, count: int, *, max_tokens: int = 32, **params: Any) -> EngineRequest:
        request = make_request(self.prompt(count), max_tokens=max_tokens, **params)
        return msgspec.structs.replace(request, images=self.images(count))

    def greedy(self, count: int) -> list[int]:
        return [int(each) for each in self.arrays[f"greedy.{count}"]]


def read_grid(sizes: NDArray[np.generic]) -> tuple[int, int, int]:
    time, height, width = (int(each) for each in sizes)
    return time, height, width


def find_runs(places: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    """Returns the begin and the length of each run of consecutive places."""
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    return tuple((int(run[0]), len(run)) for run in np.split(places, cuts))


def read_vision_golden(name: str) -> VisionGolden:
    with np.load(GOLDEN / name / "golden.npz") as arrays:
        return VisionGolden(GOLDEN / name, dict(arrays))


def encode_image(runner: ModelRunner, image: MediaInput) -> NDArray[np.float32]:
    """Runs all parts of the encoder; returns the features."""
    assert isinstance(runner, ImageRunner)
    parts = runner.encode(image)
    while True:
        try:
            next(parts)
        except StopIteration as done:
            features: NDArray[np.float32] = done.value
            return features


class LimitedRunner:
    """A runner of one sequence that computes at most `num_tokens` tokens in a step."""

    def __init__(self, runner: ModelRunner, num_tokens: int) -> None:
        assert isinstance(runner, OpenVINORunner)
        self.info = msgspec.structs.replace(
            runner.info, max_num_seqs=1, max_num_batched_tokens=num_tokens
        )
        self.run, self.encode = runner.run, runner.encode
        self.copy_blocks, self.close = runner.copy_blocks, runner.close
