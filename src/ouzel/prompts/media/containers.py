"""Videos in containers (MP4, MOV, WebM, Matroska) are read and decoded by a limited process, where PyAV is installed.

Whatever FFmpeg makes of a file, it takes no longer than the time and no more than the memory that it may.
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
READING_BYTES = (
    256 * 2**20
)  # of memory, for what FFmpeg looks at before it says how large frames are, and for one
_LEAST_BYTES = 128 * 2**20  # tables of decoders and of the file itself
_BYTES_PER_PIXEL = 64  # of a frame: decoders keep up to 17 of them, of 1.5 bytes a pixel, or 3; and what is made of one
_BYTES_PER_PIXEL_MADE = 15  # pieces, joined, encoded, sent, received

Kind = TypeVar("Kind", Facts, Frames)


class Containers:
    """Is called from many threads."""

    def __init__(self, limits: PictureLimits, timeout_s: float) -> None:
        self._limits = limits
        self._timeout_s = timeout_s
        self._process = FileProcess(_JOB, "video", self._job_limits(0))

    def close(self) -> None:
        self._process.close()

    def read(self, data: bytes, format_: ContainerFormat, path: str) -> Video:
        """Counts frames, and decodes one. `path` is the content part's. Raises InvalidRequest, EngineUnavailable."""
        if find_spec("av") is None:
            raise InvalidRequest(
                "must be a GIF, WEBP or PNG that moves, or a list of frames: to read other videos this server needs "
                f"its extra video ({install_hint('video')})",
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
        """Returns [frames, height, width, 3] of those with these ascending numbers. Raises as `read`."""
        task = ReadFrames(content.data, content.format, [*numbers], size, resample)
        frames = self._run(
            task,
            self.num_bytes(video.num_pixels, size[0] * size[1] * len(numbers)),
            video.path,
            Frames,
        )
        return np.frombuffer(frames.pixels, np.uint8).reshape(len(numbers), size[1], size[0], 3)

    @staticmethod
    def num_bytes(num_pixels: int, num_made: int) -> int:
        """Returns what decoding frames of so many pixels may take, where so many are made of all of them together."""
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
            return "that is whole, given a file that is broken"
