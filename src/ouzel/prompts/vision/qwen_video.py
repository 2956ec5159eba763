"""Prepares videos for the Qwens.

Qwen2-VL and Qwen2.5-VL have a video as one run of tokens, later models as pairs of frames with
times between. Sources: transformers 5.23, video_processing_qwen2_vl.py,
video_processing_qwen3_vl.py, processing_qwen3_vl.py, processing_qwen2_5_vl.py and `get_rope_index`
of the models. If a checkpoint has no settings for videos, the frame sizes are the reference's
defaults, not its pictures' sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.base import Normalisation, check_aspect_ratio
from ouzel.prompts.vision.qwen2_vl import PixelRange, check_patches, fit_size
from ouzel.prompts.vision.settings import (
    HALVES,
    Channels,
    NumPixels,
    PatchSide,
    PixelSettings,
    ProcessorFiles,
    read_record,
    read_video_settings,
)
from ouzel.prompts.vision.video import Clip, FrameGroup, VideoLayout, VideoProcessor

PAIR = 2  # frames that a vision encoder takes at the same time

_NumFrames = Annotated[int, Meta(ge=1, le=2**20)]
_WITHOUT_TIMES = ("qwen2_vl", "qwen2_5_vl")
# Keys of the image processor that apply to videos if the checkpoint has no video processor.
_SHARED_KEYS = (
    "patch_size",
    "merge_size",
    "temporal_patch_size",
    "image_mean",
    "image_std",
    "rescale_factor",
    "resample",
    "do_rescale",
    "do_normalize",
)


class _Settings(PixelSettings, frozen=True, kw_only=True):
    """Holds the settings, with the defaults of Qwen2-VL."""

    size: PixelRange = PixelRange()
    min_pixels: NumPixels | None = None  # takes precedence over `size`
    max_pixels: NumPixels | None = None
    patch_size: PatchSide = 14
    merge_size: Annotated[int, Meta(ge=1, le=16)] = 2
    temporal_patch_size: int = PAIR
    fps: Annotated[float, Meta(gt=0, le=1000)] = 2.0
    min_frames: _NumFrames = 4
    max_frames: _NumFrames = 768


class _Qwen3Settings(_Settings, frozen=True, kw_only=True):
    image_mean: Channels = HALVES
    image_std: Channels = HALVES
    patch_size: PatchSide = 16


class _VisionConfig(msgspec.Struct, frozen=True):
    tokens_per_second: Annotated[float, Meta(gt=0, le=1000)] = 4


class _Config(msgspec.Struct, frozen=True):
    vision_config: _VisionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class QwenVideoProcessor:
    feature_token: str
    start_token: str
    end_token: str
    normalisation: Normalisation
    resample: int
    token_side: int  # pixels
    min_pixels: int  # counts one frame; with `has_times`, all frames together
    max_pixels: int
    fps: float
    min_frames: int
    max_frames: int
    has_times: bool  # the prompt has the time before each pair of frames
    tokens_per_second: float | None  # how fast positions grow; None: by one for each pair

    @property
    def placeholder(self) -> str:
        return self.feature_token

    @property
    def frames_per_group(self) -> int:
        return PAIR

    def sampled(
        self, num_frames: int, rate: float, *, fps: float | None, max_frames: int
    ) -> Sequence[int]:
        """Returns evenly spread frames, as many as in the reference, but at most `max_frames`."""
        num_ideal = num_frames / rate * (fps or self.fps)
        most = min(self.max_frames, max_frames)
        if self.has_times:
            num = min(max(int(num_ideal), self.min_frames), most, num_frames)
            return [int(each) for each in np.linspace(0, num_frames - 1, num).round()]
        most = _even(min(most, num_frames))
        num = _even(min(max(num_ideal, self.min_frames), most, num_frames))
        if num < PAIR:  # the reference does not support a single frame
            return [0]
        # The reference adds the steps in double precision and rounds them to single.
        steps = np.arange(0, num_frames, num_frames / num).astype(np.float32)
        return [min(int(each), num_frames - 1) for each in steps[:most]]

    def layout(self, clip: Clip) -> VideoLayout:
        width, height = size = self._new_size(clip)
        rows, columns = height // self.token_side, width // self.token_side
        times = [*clip.times_s, clip.times_s[-1]][: _even(len(clip.times_s) + 1)]
        num_pairs = len(times) // PAIR
        features, grid = self.feature_token * (rows * columns), (1, rows, columns)
        if not self.has_times:
            shifts = self._time_shifts(num_pairs, clip.rate)
            pairs = tuple(FrameGroup(rows * columns, grid, shift) for shift in shifts)
            return VideoLayout(features * num_pairs, size, pairs)
        middles = [
            (first + second) / 2 for first, second in zip(times[::2], times[1::2], strict=True)
        ]
        frames = f"{self.start_token}{features}{self.end_token}"
        text = "".join(f"<{middle:.1f} seconds>{frames}" for middle in middles)
        return VideoLayout(text, size, (FrameGroup(rows * columns, grid, None),) * num_pairs)

    def _time_shifts(self, num_pairs: int, rate: float) -> list[int | None]:
        """Computes the shifts in single precision, as the reference does; the first pair has no
        shift.
        """
        interval = np.float32(1.0)
        if self.tokens_per_second is not None:
            interval = np.float32(self.tokens_per_second) * np.float32(PAIR / rate)
        shifts = np.arange(num_pairs, dtype=np.float32) * interval
        return [None, *(int(each) for each in shifts[1:])]

    def _new_size(self, clip: Clip) -> tuple[int, int]:
        """Returns (width, height) within the range of pixels, both multiples of a token's side."""
        width, height, side = clip.width, clip.height, self.token_side
        if not self.has_times:
            check_aspect_ratio(width, height)
            return fit_size(width, height, side, (self.min_pixels, self.max_pixels))
        if width < side or height < side:
            scale = max(side / height, side / width)
            width, height = int(width * scale), int(height * scale)
        check_aspect_ratio(width, height)
        num_frames = max(len(clip.times_s), PAIR)
        return fit_size(width, height, side, (self.min_pixels, self.max_pixels), num_frames)


def load(files: ProcessorFiles) -> VideoProcessor:
    """Makes the processor from the checkpoint's files. Raises ModelLoadError."""
    has_times = files.model_type not in _WITHOUT_TIMES
    form = _Qwen3Settings if has_times else _Settings
    settings = read_video_settings(
        files, form, ("Qwen2VLVideoProcessor", "Qwen3VLVideoProcessor"), _SHARED_KEYS
    )
    if settings.temporal_patch_size != PAIR:
        found = settings.temporal_patch_size
        raise ModelLoadError(
            f"{files.video_processor_path}: temporal_patch_size must be 2, found {found}"
        )
    path = files.video_processor_path if files.video_processor else files.image_processor_path
    check_patches(files, path, settings.patch_size, settings.merge_size)
    size, side = settings.size, settings.patch_size * settings.merge_size
    default_side = 32 if has_times else 28
    return QwenVideoProcessor(
        feature_token=files.special_tokens.get("video_token", "<|video_pad|>"),
        start_token=files.special_tokens.get("vision_start_token", "<|vision_start|>"),
        end_token=files.special_tokens.get("vision_end_token", "<|vision_end|>"),
        normalisation=settings.normalisation(),
        resample=settings.resample,
        token_side=side,
        min_pixels=settings.min_pixels or size.shortest_edge or 128 * default_side**2,
        max_pixels=settings.max_pixels or size.longest_edge or 768 * default_side**2,
        fps=settings.fps,
        min_frames=settings.min_frames,
        max_frames=settings.max_frames,
        has_times=has_times,
        tokens_per_second=_tokens_per_second(files),
    )


def _tokens_per_second(files: ProcessorFiles) -> float | None:
    if files.model_type != "qwen2_5_vl":
        return None
    config = read_record(files.config, _Config, files.directory / "config.json")
    return config.vision_config.tokens_per_second


def _even(number: float) -> int:
    return math.floor(number / PAIR) * PAIR
