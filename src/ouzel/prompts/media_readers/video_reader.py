"""Loads the videos of a chat, counts their tokens by frames and sizes, and prepares them for the
model's family.
"""

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
    PixelCache,
    PreparedImage,
    PreparedPixels,
)
from ouzel.prompts.vision.video import Clip, FrameGroup, VideoLayout, VideoProcessor


@dataclass(frozen=True, slots=True)
class LoadedVideo:
    video: Video
    numbers: tuple[int, ...]  # numbers of the sampled frames
    layout: VideoLayout

    @property
    def num_tokens(self) -> int:
        return self.layout.num_tokens

    @property
    def key(self) -> tuple[bytes, tuple[int, ...], tuple[int, int]]:
        return self.video.digest, self.numbers, self.layout.size


class VideoReader:
    """Loads and prepares videos. It belongs to one event loop."""

    def __init__(self, processor: VideoProcessor, loader: VideoLoader, cache: PixelCache) -> None:
        self._processor = processor
        self._loader = loader
        self._cache = cache

    def close(self) -> None:
        self._loader.close()

    async def load(self, parts: Sequence[VideoPart]) -> list[LoadedVideo]:
        """Loads the videos and chooses their frames. Raises InvalidRequest or Overloaded."""
        videos = await self._loader.load(parts)
        return [self._lay_out(video, part) for video, part in zip(videos, parts, strict=True)]

    def _lay_out(self, video: Video, part: VideoPart) -> LoadedVideo:
        if isinstance(video.content, tuple):  # the client has chosen the frames
            numbers, rate = tuple(range(video.num_frames)), video.rate
        else:
            most = self._loader.max_frames(video)
            sampled = self._processor.sampled(
                video.num_frames, video.rate, fps=part.fps, max_frames=most
            )
            numbers = tuple(sampled)
            rate = len(numbers) / video.num_frames * video.rate
        clip = Clip(video.width, video.height, [video.time_s(number) for number in numbers], rate)
        try:
            return LoadedVideo(video, numbers, self._processor.layout(clip))
        except ValueError as error:
            complaint = f"cannot be taken by this model: {error}"
            raise InvalidRequest(complaint, field=part.path) from error

    async def prepare(self, loaded: Sequence[LoadedVideo]) -> list[PreparedImage]:
        """Decodes and prepares the videos. Raises InvalidRequest."""
        return [self._prepared(each, await self._pixels(each)) for each in loaded]

    async def _pixels(self, loaded: LoadedVideo) -> tuple[PreparedPixels, ...]:
        """Returns the pixels of each group of frames."""
        pixels = self._cache.get(loaded.key)
        if pixels is None:
            size, resample = loaded.layout.size, self._processor.resample
            frames = await self._loader.frames(loaded.video, loaded.numbers, size, resample)
            pixels = await self._loader.run(
                partial(_group_frames, frames, self._processor.frames_per_group)
            )
        self._cache.add(loaded.key, pixels)
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


def _group_frames(frames: Frames, step: int) -> tuple[PreparedPixels, ...]:
    """Splits the frames into groups of `step`. The last group may be smaller: the encoder repeats
    its frame.
    """
    groups: list[PreparedPixels] = []
    for first in range(0, len(frames), step):
        group = PreparedPixels.from_tiles(frames[first : first + step])
        digest = blake2b(group.values, digest_size=16).digest()
        groups.append(replace(group, digest=digest))
    return tuple(groups)


def _digest(group: FrameGroup, pixels: PreparedPixels) -> bytes:
    """Returns a digest that is equal for equal frames at equal positions, in any video."""
    shift = -1 if group.time_shift is None else group.time_shift
    return blake2b(
        b"frames" + struct.pack("<4q", *pixels.shape, shift) + pixels.digest, digest_size=16
    ).digest()
