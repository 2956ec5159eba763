"""Vision encoders, and language models with pictures, against transformers in float32."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.engine.base import ImageRunner, ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.types.engine_request import EngineRequest, ImageInput
from tests.backends import of_kinds
from tests.backends.conftest import Load
from tests.engine.requests import make_request, run, run_alone
from tests.release_only import release_only

GOLDEN = Path(__file__).parent / "golden_vision"
NAMES = sorted(path.name for path in GOLDEN.iterdir())
IMAGE_TOKEN = 7

# One of each kind of place and position.
KINDS = ["gemma3", "llava_next", "mistral3", "qwen2_5_vl", "qwen3_5", "qwen3_vl", "smolvlm"]
OF_KINDS = of_kinds("chunks and caches of other families that see", NAMES, KINDS)
OF_TWO_KINDS = of_kinds("precision of other families that see", NAMES, ["gemma3", "qwen3_vl"])


@dataclass(frozen=True)
class VisionGolden:
    directory: Path
    arrays: dict[str, NDArray[Any]]  # of several types

    def prompt(self, count: int) -> list[int]:
        return [int(each) for each in self.arrays[f"prompt.{count}"]]

    def images(self, count: int) -> tuple[ImageInput, ...]:
        """Returns the first pictures with their places in the prompt with so many."""
        places = np.flatnonzero(self.arrays[f"prompt.{count}"] == IMAGE_TOKEN)
        made, begin = [], 0
        for number in range(count):
            end = begin + self.num_rows(number)
            made.append(self.image(number, runs_of(places[begin:end])))
            begin = end
        assert begin == len(places)
        return tuple(made)

    def num_rows(self, number: int) -> int:
        """Returns how many rows a picture has, from the prompts with it and without it."""
        return int(self.arrays["num_rows"][number])

    def image(self, number: int, runs: tuple[tuple[int, int], ...]) -> ImageInput:
        pixels = self.arrays[f"picture.{number}"]
        grids = self.arrays.get("grids")
        tiles, height, width, _ = pixels.shape
        height_before, width_before = (int(each) for each in self.arrays["sizes"][number])
        return ImageInput(
            digest=bytes([number] * 16),
            runs=runs,
            shape=(tiles, height, width),
            pixels=pixels.tobytes(),
            rescale=1 / 255,
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            size=(height_before, width_before),
            position_grid=None if grids is None else grid_of(grids[number]),
        )

    def request(
        self, count: int, *, max_tokens: int = 32, **params: Any
    ) -> EngineRequest:  # what make_request takes
        asked = make_request(self.prompt(count), max_tokens=max_tokens, **params)
        return msgspec.structs.replace(asked, images=self.images(count))

    def greedy(self, count: int) -> list[int]:
        return [int(each) for each in self.arrays[f"greedy.{count}"]]


def grid_of(sizes: NDArray[np.generic]) -> tuple[int, int, int]:
    time, height, width = (int(each) for each in sizes)
    return time, height, width


def runs_of(places: NDArray[np.int64]) -> tuple[tuple[int, int], ...]:
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    return tuple((int(run[0]), len(run)) for run in np.split(places, cuts))


def read_vision_golden(name: str) -> VisionGolden:
    with np.load(GOLDEN / name / "golden.npz") as arrays:
        return VisionGolden(GOLDEN / name, dict(arrays))


@pytest.fixture
def of_kind(request: pytest.FixtureRequest) -> VisionGolden:
    return read_vision_golden(request.param)


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest) -> VisionGolden:
    return read_vision_golden(request.param)


def features_of(runner: ModelRunner, image: ImageInput) -> NDArray[np.float32]:
    assert isinstance(runner, ImageRunner)
    parts = runner.encode(image)
    while True:
        try:
            next(parts)
        except StopIteration as done:
            features: NDArray[np.float32] = done.value
            return features


class Limited:
    """A runner of one sequence that takes so many tokens in a step."""

    def __init__(self, runner: ModelRunner, num_tokens: int) -> None:
        assert isinstance(runner, OpenVINORunner)
        self.info = msgspec.structs.replace(
            runner.info, max_num_seqs=1, max_num_batched_tokens=num_tokens
        )
        self.run, self.encode = runner.run, runner.encode
        self.copy_blocks, self.close = runner.copy_blocks, runner.close


def relative_error(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def test_features_are_those_of_transformers(golden: VisionGolden, load: Load) -> None:
    runner = load(golden.directory)
    found = np.concatenate([features_of(runner, image) for image in golden.images(4)], axis=1)

    expected = golden.arrays["features.4"]
    assert found.shape == expected.shape
    assert relative_error(found, expected) < 1e-5


def test_an_encoder_has_a_part_between_the_first_and_the_last(load: Load) -> None:
    """What such a part takes and gives is what large encoders consist of; so these tests must have one."""
    runner, image = load(GOLDEN / "qwen2_vl"), read_vision_golden("qwen2_vl").images(1)[0]
    assert isinstance(runner, ImageRunner)

    assert sum(1 for _ in runner.encode(image)) >= 2


@pytest.mark.parametrize(
    "count", [2, *release_only("prompts with one picture and with four", 1, 4)]
)
def test_prompt_logprobs_and_greedy_tokens_are_those_of_transformers(
    golden: VisionGolden, load: Load, count: int
) -> None:
    engine = EngineCore(load(golden.directory))

    result = run_alone(engine, golden.request(count, num_prompt_logprobs=1))[0]

    rows = golden.arrays[f"logits.{count}"][:-1].astype(np.float64)
    token_ids = golden.prompt(count)[1:]
    expected = rows[np.arange(len(rows)), token_ids] - np.log(np.exp(rows).sum(axis=1))
    logprobs = np.array([position.sampled.logprob for position in result.prompt_logprobs])
    assert np.abs(logprobs - expected).max() < 1e-4
    assert result.token_ids == golden.greedy(count)


@pytest.mark.parametrize("chunk", [7, 45])
@pytest.mark.parametrize("of_kind", OF_KINDS, indirect=True)
def test_chunks_of_a_prompt_with_pictures_give_the_same_tokens(
    of_kind: VisionGolden, load: Load, chunk: int
) -> None:
    engine = EngineCore(Limited(load(of_kind.directory), chunk), prefix_caching=False)

    assert run_alone(engine, of_kind.request(2, max_tokens=8))[0].token_ids == of_kind.greedy(2)[:8]


@pytest.mark.parametrize("of_kind", OF_KINDS, indirect=True)
def test_cached_and_batched_requests_give_the_same_tokens(
    of_kind: VisionGolden, load: Load
) -> None:
    engine = EngineCore(load(of_kind.directory))
    first = run_alone(engine, of_kind.request(2))[0]
    requests = [of_kind.request(count) for count in (1, 2, 4, 2, 1)]

    results = run(engine, requests)

    assert first.token_ids == of_kind.greedy(2)
    for each, count in zip(requests, (1, 2, 4, 2, 1), strict=True):
        assert results[each.request_id, 0].token_ids == of_kind.greedy(count)
    assert results[requests[1].request_id, 0].final.num_cached_tokens > 0


# Each family's pictures are told apart in test_seeing_families.py, all the way from a chat.
@pytest.mark.parametrize("of_kind", OF_TWO_KINDS, indirect=True)
def test_another_picture_gives_other_logprobs(of_kind: VisionGolden, load: Load) -> None:
    engine = EngineCore(load(of_kind.directory))

    def last_logprob(asked: EngineRequest) -> float:
        return run_alone(engine, asked)[0].logprobs[0].sampled.logprob

    asked = of_kind.request(1, max_tokens=1, num_logprobs=0)
    dark = msgspec.structs.replace(
        asked.images[0], digest=b"dark", pixels=bytes(len(asked.images[0].pixels))
    )
    blank = msgspec.structs.replace(asked, request_id="blank", images=(dark,))
    assert abs(last_logprob(asked) - last_logprob(blank)) > 1e-3


@pytest.mark.parametrize("of_kind", OF_TWO_KINDS, indirect=True)
def test_the_serving_precision_is_near(of_kind: VisionGolden, load: Load) -> None:
    runner = load(of_kind.directory, "int8", "auto", "auto")
    found = np.concatenate([features_of(runner, image) for image in of_kind.images(4)], axis=1)

    assert relative_error(found, of_kind.arrays["features.4"]) < 0.05


@pytest.mark.release("chunks of every size, of families that see")
def test_every_chunk_size_gives_the_same_tokens(golden: VisionGolden, load: Load) -> None:
    runner = load(golden.directory)
    for chunk in range(1, len(golden.prompt(2)) + 1):
        engine = EngineCore(Limited(runner, chunk), prefix_caching=False)
        tokens = run_alone(engine, golden.request(2, max_tokens=8))[0].token_ids
        assert tokens == golden.greedy(2)[:8], f"chunks of {chunk}"
