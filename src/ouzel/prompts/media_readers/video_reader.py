"""The videos of a chat are loaded, counted as tokens by frames and sizes, and prepared as the model's family does."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import VideoPart
from ouzel.prompts.media.video import Video
from ouzel.prompts.media.video_loader import Frames, VideoLoader
from ouzel.prompts.media_readers.prepared_images import (
    EncoderInput,
    KeptPixels,
    PreparedImage,
    PreparedPixels,
)
from ouzel.prompts.vision.video import Clip, FrameGroup, VideoLayout, VideoProcessor


@dataclass(frozen=True, slots=True)
class LoadedVideo:
    video: Video
    numbers: tuple[int, ...]  # of the frames that are shown
    layout: VideoLayout

    @property
    def num_tokens(self) -> int:
        return self.layout.num_tokens

    @property
    def key(self) -> tuple[bytes, tuple[int, ...], tuple[int, int]]:
        return self.video.digest, self.numbers, self.layout.size


class VideoReader:
    """Belongs to one event loop."""

    def __init__(self, processor: VideoProcessor, loader: VideoLoader, kept: KeptPixels) -> None:
        self._processor = processor
        self._loader = loader
        self._kept = kept

    def close(self) -> None:
        self._loader.close()

    async def load(self, parts: Sequence[VideoPart]) -> list[LoadedVideo]:
        """Raises InvalidRequest, Overloaded."""
        videos = await self._loader.load(parts)
        return [self._laid_out(video, part) for video, part in zip(videos, parts, strict=True)]

    def _laid_out(self, video: Video, part: VideoPart) -> LoadedVideo:
        if isinstance(video.content, tuple):  # who sent the frames has chosen them
            numbers, rate = tuple(range(video.num_frames)), video.rate
        else:
            most = self._loader.max_frames(video)
            numbers = tuple(
                self._processor.sampled(video.num_frames, video.rate, fps=part.fps, max_frames=most)
            )
            rate = len(numbers) / video.num_frames * video.rate
        clip = Clip(video.width, video.height, [video.time_s(number) for number in numbers], rate)
        try:
            return LoadedVideo(video, numbers, self._processor.layout(clip))
        except ValueError as error:
            raise InvalidRequest(f"is no video for this model: {error}", field=part.path) from error

    async def prepare(self, loaded: Sequence[LoadedVideo]) -> list[PreparedImage]:
        """Raises InvalidRequest."""
        return [self._prepared(each, await self._pixels(each)) for each in loaded]

    async def _pixels(self, loaded: LoadedVideo) -> tuple[PreparedPixels, ...]:
        """Returns those of each group of frames."""
        pixels = self._kept.get(loaded.key)
        if pixels is None:
            size, resample = loaded.layout.size, self._processor.resample
            frames = await self._loader.frames(loaded.video, loaded.numbers, size, resample)
            pixels = await self._loader.run(
                partial(_grouped, frames, self._processor.frames_per_group)
            )
        self._kept.keep(loaded.key, pixels)
        return pixels

    def _prepared(self, loaded: LoadedVideo, pixels: tuple[PreparedPixels, ...]) -> PreparedImage:
        layout, size = loaded.layout, (loaded.video.height, loaded.video.width)
        inputs = tuple(
            EncoderInput(
                digest=_digest(group, own),
                num_tokens=group.num_tokens,
                size=size,
                pixels=own,
                normalisation=self._processor.normalisation,
                position_grid=group.position_grid,
                time_shift=group.time_shift,
            )
            for group, own in zip(layout.groups, pixels, strict=True)
        )
        return PreparedImage(self._processor.placeholder, layout.text, inputs)


def _grouped(frames: Frames, step: int) -> tuple[PreparedPixels, ...]:
    """A single last frame of a pair stays one: the encoder shows it twice."""
    groups = (
        PreparedPixels.of(frames[first : first + step]) for first in range(0, len(frames), step)
    )
    return tuple(
        replace(group, digest=blake2b(group.values, digest_size=16).digest()) for group in groups
    )


def _digest(group: FrameGroup, pixels: PreparedPixels) -> bytes:
    """Frames that look alike have the same, wherever they come from, if their positions have."""
    shift = -1 if group.time_shift is None else group.time_shift
    return blake2b(
        b"frames" + struct.pack("<4q", *pixels.shape, shift) + pixels.digest, digest_size=16
    ).digest()
