"""Reads and decodes videos in containers (MP4, MOV, WebM, Matroska) in a limited process, with
PyAV.

Time and memory of the process are limited, because FFmpeg reads untrusted files.
"""

from collections.abc import Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint
from ouzel.limited_process import JobEnded, Limits, MemoryLimitExceeded, TimeLimitExceeded
from ouzel.prompts.media.container_job import Facts, Frames, ReadFacts, ReadFrames, Task
from ouzel.prompts.media.file_process import FileProcess
from ouzel.prompts.media.picture import DIGEST_LEN, PictureLimits
from ouzel.prompts.media.video import Container, ContainerFormat, Video, check_frame_size

_JOB = "ouzel.prompts.media.container_job:create_container_job"
# Memory of FFmpeg before it reports the size of frames, and for one frame.
READING_BYTES = 256 * 2**20
_LEAST_BYTES = 128 * 2**20  # memory for tables of the decoders and of the file
# Memory per pixel of a frame. Decoders keep up to 17 frames of 1.5 or 3 bytes per pixel, and the
# result.
_BYTES_PER_PIXEL = 64
_BYTES_PER_PIXEL_MADE = 15  # returned pixels: as pieces, joined, encoded, sent, received

Kind = TypeVar("Kind", Facts, Frames)


class Containers:
    """Reads videos in one limited process. It is called from many threads."""

    def __init__(self, limits: PictureLimits, timeout_s: float) -> None:
        self._limits = limits
        self._timeout_s = timeout_s
        self._process = FileProcess(_JOB, "video", self._job_limits(0))

    def close(self) -> None:
        self._process.close()

    def read(self, data: bytes, format_: ContainerFormat, path: str) -> Video:
        """Counts the frames and decodes one of them. `path` names the part in errors.

        Raises InvalidRequest or EngineUnavailable.
        """
        if find_spec("av") is None:
            raise InvalidRequest(
                "must be a GIF, WEBP or PNG that moves, or a list of frames: to read other videos "
                f"this server needs its extra video ({install_hint('video')})",
                field=path,
            )
        max_frame_pixels = self._limits.max_pixels // 2
        task = ReadFacts(data, format_, max_frame_pixels)
        facts = self._run(task, READING_BYTES, path, Facts)
        check_frame_size(facts.width, facts.height, path, self._limits)
        return Video(
            digest=blake2b(data, digest_size=DIGEST_LEN).digest(),
            content=Container(data, format_),
            width=facts.width,
            height=facts.height,
            num_frames=facts.num_frames,
            rate=facts.rate,
            starts_s=memoryview(facts.starts_s).cast("d"),
            path=path,
        )

    def frames(
        self,
        video: Video,
        content: Container,
        numbers: Sequence[int],
        size: tuple[int, int],
        resample: int,
    ) -> NDArray[np.uint8]:
        """Decodes the frames with these ascending numbers, as uint8 [frames, height, width, 3].

        Raises the same errors as `read`.
        """
        task = ReadFrames(content.data, content.format, [*numbers], size, resample)
        num_bytes = self.num_bytes(video.num_pixels, size[0] * size[1] * len(numbers))
        frames = self._run(task, num_bytes, video.path, Frames)
        return np.frombuffer(frames.pixels, np.uint8).reshape(len(numbers), size[1], size[0], 3)

    @staticmethod
    def num_bytes(num_pixels: int, num_made: int) -> int:
        """Returns the memory for decoding frames of `num_pixels` each, with `num_made` pixels as
        the result.
        """
        return _LEAST_BYTES + num_pixels * _BYTES_PER_PIXEL + num_made * _BYTES_PER_PIXEL_MADE

    def _job_limits(self, num_bytes: int) -> Limits:
        return Limits(wall_s=self._timeout_s, memory_bytes=num_bytes)

    def _run(self, task: Task, num_bytes: int, path: str, kind: type[Kind]) -> Kind:
        limits = self._job_limits(num_bytes + 3 * len(task.data))
        return self._process.run(task, limits, path, kind, lambda ended: _reason(ended, limits))


def _reason(ended: JobEnded, limits: Limits) -> str:
    match ended:
        case TimeLimitExceeded():
            return f"that is decoded in <= {limits.wall_s:g} s (video_timeout_s)"
        case MemoryLimitExceeded():
            return f"that is decoded within {limits.memory_bytes // 2**20} MiB of memory"
        case _:
            return "that is complete, given a file that is broken"
