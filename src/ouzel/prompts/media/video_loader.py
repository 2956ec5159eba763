"""Loads videos from content parts and decodes their sampled frames, outside the event loop."""

from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import TypeVar, assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.containers import READING_BYTES, Containers
from ouzel.prompts.media.decoding_memory import DecodingMemory
from ouzel.prompts.media.fetching.sources import read_source
from ouzel.prompts.media.loader import MediaLoader, run_concurrently
from ouzel.prompts.media.parts import MediaPart, VideoPart
from ouzel.prompts.media.picture import check_file_size
from ouzel.prompts.media.pixels import BYTES_PER_PIXEL, Resized
from ouzel.prompts.media.video import (
    Animation,
    Container,
    Video,
    container_format,
    make_frame_list_video,
    read_animation,
)
from ouzel.worker_threads import WorkerThreads

Frames = NDArray[np.uint8]  # [frames, height, width, 3]
Result = TypeVar("Result")

_MAX_DECODERS = 2


class VideoLoader:
    """Loads and decodes videos. It belongs to one event loop."""

    def __init__(self, loader: MediaLoader) -> None:
        self._loader = loader
        self._config = loader.config
        self._limits = loader.intake.limits
        self._threads = WorkerThreads("videos", _MAX_DECODERS)
        # Videos have their own memory, so that pictures do not wait for a slow video.
        self._memory = DecodingMemory(self._config.max_media_memory_bytes)
        self._containers = Containers(self._limits, self._config.video_timeout_s)

    def max_frames(self, video: Video) -> int:
        """Returns the maximum number of frames to decode; it is smaller for larger frames."""
        return min(self._config.max_video_frames, self._limits.max_pixels // video.num_pixels)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs longer work in a thread that decodes videos."""
        return await self._threads.run(work)

    async def load(self, parts: Sequence[VideoPart]) -> list[Video]:
        """Returns a video for each part of a request, in order. Raises InvalidRequest or
        Overloaded.
        """
        max_videos = self._config.max_videos
        if len(parts) > max_videos:
            raise InvalidRequest(
                f"must be one of <= {max_videos} videos in a request (max_videos), "
                f"given {len(parts)}",
                field=parts[max_videos].path,
            )
        distinct = {part.key: part for part in reversed(parts)}
        videos = await run_concurrently([self._video(part) for part in distinct.values()])
        by_key = dict(zip(distinct, videos, strict=True))
        return [by_key[part.key] for part in parts]

    async def _video(self, part: VideoPart) -> Video:
        if isinstance(part.source, MediaPart):
            return await self._file(part.source)
        if len(part.source) > self._config.max_video_frames:
            max_frames = self._config.max_video_frames
            raise InvalidRequest(
                f"must be one of <= {max_frames} frames of a video (max_video_frames), "
                f"given {len(part.source)}",
                field=part.source[max_frames].path,
            )
        frames = await self._loader.pictures(part.source)
        return make_frame_list_video(frames, part, self._limits)

    async def _file(self, part: MediaPart) -> Video:
        source = await self._loader.intake.run(partial(read_source, part.url, part.path))
        read = await self._loader.intake.read(
            source, part.path, partial(self._without_container, part.path)
        )
        content = read.content if isinstance(read, Video) else read
        for file in content if isinstance(content, tuple) else (content,):
            self._loader.held_bytes.add(file, len(file.data))
        return read if isinstance(read, Video) else await self._container(read, part.path)

    def _without_container(self, path: str, data: bytes) -> Video | Container:
        format_ = container_format(data)
        if format_ is not None:
            return Container(data, format_)
        return read_animation(data, path, self._limits, self._loader.decoders.read)

    async def _container(self, content: Container, path: str) -> Video:
        def read() -> Video:
            with self._memory.hold(READING_BYTES):
                return self._containers.read(content.data, content.format, path)

        check_file_size(len(content.data), path, self._limits)
        return await self._threads.run(read)

    async def frames(
        self, video: Video, numbers: Sequence[int], size: tuple[int, int], resample: int
    ) -> Frames:
        """Decodes the frames with these ascending numbers, resized to `size` (width, height).

        `resample` is the number of Pillow's filter. Raises InvalidRequest.
        """
        resized = Resized(size, resample)
        match video.content:
            case tuple():
                decoders = self._loader.decoders
                made = await self._loader.decode(
                    video.content, lambda picture: decoders.prepare(picture, resized)
                )
                return await self.run(lambda: np.stack([made[number][0] for number in numbers]))
            case Animation():
                return await self._animation(video, video.content, numbers, resized)
            case Container():
                return await self._threads.run(
                    partial(self._decode_container, video, video.content, numbers, size, resample)
                )
            case _:
                assert_never(video.content)

    def _decode_container(
        self,
        video: Video,
        content: Container,
        numbers: Sequence[int],
        size: tuple[int, int],
        resample: int,
    ) -> Frames:
        num_made = size[0] * size[1] * len(numbers)
        with self._memory.hold(self._containers.num_bytes(video.num_pixels, num_made)):
            return self._containers.frames(video, content, numbers, size, resample)

    async def _animation(
        self, video: Video, content: Animation, numbers: Sequence[int], resized: "Resized"
    ) -> Frames:
        is_abandoned = Event()

        def decode() -> Frames:
            with self._memory.hold(2 * video.num_pixels * BYTES_PER_PIXEL):
                if is_abandoned.is_set():
                    raise too_slow(self._config.video_timeout_s, video.path)
                return self._loader.decoders.frames(
                    video, content, numbers, resized, self._config.video_timeout_s
                )

        try:
            return await self._threads.run(decode)
        finally:
            is_abandoned.set()

    def close(self) -> None:
        """Ends the threads and the process without waiting for running work."""
        self._threads.close()
        self._containers.close()


def too_slow(limit_s: float, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a video that is decoded in <= {limit_s:g} s (video_timeout_s)", field=path
    )
