"""Reads golden checkpoints that hear: prompts, sounds, expected values.

training/golden/make_hearing.py wrote them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_RATE, Sound
from ouzel.prompts.hearing.base import SoundProcessor
from ouzel.prompts.hearing.loader import load_sound_processor
from ouzel.types.engine_request import EngineRequest, ImageInput, MediaInput, SoundInput
from tests.backends.vision_golden import find_runs
from tests.engine.requests import make_request

GOLDEN = Path(__file__).parent / "golden_hearing"
NAMES = sorted(path.name for path in GOLDEN.iterdir())
SEEING = ["gemma4"]  # checkpoints that see, too
WITH_LAYERS = [name for name in NAMES if name != "gemma4_unified"]  # have encoders of several parts
SOUND_TOKEN = 7
IMAGE_TOKEN = 6
SOUND_LENGTHS = {  # in samples
    "gemma4": (16_480, 8_000, 40_123),
    "gemma4_unified": (16_480, 8_000, 40_123),
    "qwen2_audio": (16_480, 8_000, 40_123),
    # one window of attention of the encoder, less than the shortest sound, more than one window
    "qwen3_asr": (32_000, 5_000, 52_123),
    "qwen3_omni_moe": (32_000, 5_000, 52_123),
}


def make_sound(number: int, length: int) -> Sound:
    """Makes a sound of tones and noise, as the program that wrote the expected values."""
    times = np.arange(length) / SAMPLE_RATE
    tones = sum(
        np.sin(2 * np.pi * hertz * (number + 1) * times * (1 + times)) for hertz in (150, 410, 990)
    )
    noise = np.random.default_rng(number).standard_normal(len(times))
    samples = np.rint((tones * 0.2 + noise * 0.02) * 2**15).clip(-(2**15), 2**15 - 1)
    return Sound.from_samples(samples.astype(np.int16))


@dataclass(frozen=True)
class HearingGolden:
    """A checkpoint that hears, and prompts with one, two and three sounds.

    A checkpoint that sees, too, has the prompt "mixed": a picture, two sounds, and a picture. The
    arrays also have the values that transformers computes.
    """

    directory: Path
    processor: SoundProcessor
    arrays: dict[str, NDArray[Any]]  # element types differ

    def prompt(self, count: int | str) -> list[int]:
        return [int(each) for each in self.arrays[f"prompt.{count}"]]

    def greedy(self, count: int | str) -> list[int]:
        return [int(each) for each in self.arrays[f"greedy.{count}"]]

    def sounds(self, count: int) -> tuple[SoundInput, ...]:
        """Returns the first `count` sounds, with their places in the prompt of `count` sounds."""
        places = np.flatnonzero(self.arrays[f"prompt.{count}"] == SOUND_TOKEN)
        ends = np.cumsum([self.layout_tokens(number) for number in range(count)])
        assert len(places) == ends[-1]
        return tuple(
            self.sound(number, int(own[0]))
            for number, own in enumerate(np.split(places, ends[:-1]))
        )

    def mixed(self) -> tuple[MediaInput, ...]:
        """Returns the pictures and sounds of the prompt "mixed"."""
        prompt = self.arrays["prompt.mixed"]
        seen, heard = (
            find_runs(np.flatnonzero(prompt == each)) for each in (IMAGE_TOKEN, SOUND_TOKEN)
        )
        return (
            self.image(0, seen[0]),
            self.sound(0, heard[0][0]),
            self.sound(1, heard[1][0]),
            self.image(1, seen[1]),
        )

    def mixed_request(self, *, max_tokens: int = 24, **params: Any) -> EngineRequest:
        request = make_request(self.prompt("mixed"), max_tokens=max_tokens, **params)
        return msgspec.structs.replace(request, images=self.mixed())

    def image(self, number: int, run: tuple[int, int]) -> ImageInput:
        """Returns the picture with its tokens in this run."""
        pixels = self.arrays[f"picture.{number}"]
        num_tiles, height, width, _ = pixels.shape
        return ImageInput(
            digest=b"image" + bytes([number] * 11),
            runs=(run,),
            shape=(num_tiles, height, width),
            pixels=pixels.tobytes(),
            rescale=1 / 255,
            mean=(0.5, 0.5, 0.5),
            std=(0.5, 0.5, 0.5),
            size=(height, width),
        )

    @property
    def lengths(self) -> tuple[int, ...]:
        return SOUND_LENGTHS[self.directory.name]

    def layout_tokens(self, number: int) -> int:
        return self.processor.layout(self.lengths[number]).num_tokens

    def sound(self, number: int, begin: int) -> SoundInput:
        """Returns the sound with its tokens from `begin` on."""
        sound = make_sound(number, self.lengths[number])
        layout = self.processor.layout(sound.num_samples)
        features = self.processor.compute_features(sound)
        num_bins, num_frames = features.shape
        return SoundInput(
            digest=bytes([number] * 16),
            runs=((begin, layout.num_tokens),),
            shape=(num_bins, num_frames),
            features=features.tobytes(),
            num_frames=layout.num_frames,
        )

    # Any: the fields of make_request
    def request(self, count: int, *, max_tokens: int | None = None, **params: Any) -> EngineRequest:
        length = len(self.greedy(count)) if max_tokens is None else max_tokens
        request = make_request(self.prompt(count), max_tokens=length, **params)
        return msgspec.structs.replace(request, images=self.sounds(count))


def read_hearing_golden(name: str) -> HearingGolden:
    directory = GOLDEN / name
    processor = load_sound_processor(directory)
    assert processor is not None
    with np.load(directory / "golden.npz") as arrays:
        return HearingGolden(directory, processor, dict(arrays))
