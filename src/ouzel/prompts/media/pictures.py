"""Reads pictures in a limited process, which isolates native decoders and their memory.

Headers that Pillow reads in Python are read in this process, because a job costs a millisecond.
"""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.limited_process import (
    JobEnded,
    JobFailed,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.prompts.media.picture import (
    DIGEST_LEN,
    Header,
    Picture,
    PictureLimits,
    check_file_size,
    decode_header,
)
from ouzel.prompts.media.picture_job import (
    DecodeFrames,
    DecodePicture,
    FoundHeader,
    Preparation,
    Prepared,
    ReadHeader,
    Refused,
    Task,
)
from ouzel.prompts.media.pillow import is_read_natively
from ouzel.prompts.media.pixels import BYTES_PER_PIXEL
from ouzel.prompts.media.video import Animation, Video

_JOB = "ouzel.prompts.media.picture_job:create_picture_job"
_HEADER_LIMITS = Limits(wall_s=60, cpu_s=5, memory_bytes=256 * 2**20)
_PREPARING_BYTES = 768 * 2**20  # memory for resized pixels: a square of 300 MB, tiles, copies
_LEAST_S = 20.0  # processor time
_PIXELS_PER_S = 2_000_000  # a tenth of the speed of a slow core
_WALL_TIMES = 6.0  # wall time per processor time: the engine uses the processors, too
_FULL_PRIORITY_S = 5.0
_RETRY_AFTER_S = 1.0
_MAX_IDLE = 4  # the number of pictures decoded at the same time

Array = NDArray[np.uint8]
Result = TypeVar("Result", FoundHeader, Prepared)


class Pictures:
    """Reads and prepares pictures. It is called from many threads.

    The process starts with the first picture, or with `start`.
    """

    def __init__(self, limits: PictureLimits, imports: Sequence[str] = ()) -> None:
        """`imports` are modules that preparations need."""
        self._limits = limits
        self._process = LimitedProcess(
            _JOB, {"imports": [*imports]}, _HEADER_LIMITS, max_idle=_MAX_IDLE
        )

    def start(self) -> None:
        self._process.start()

    def close(self) -> None:
        self._process.close()

    def read(self, data: bytes, path: str) -> Picture:
        """Reads the header and returns the picture. `path` names the part in errors.

        Only the bytes count: many clients send a PNG in a data URL as image/jpeg. Raises
        InvalidRequest or EngineUnavailable.
        """
        check_file_size(len(data), path, self._limits)
        read_header = self._native_header if is_read_natively(data) else self._header
        header = read_header(data, path)
        digest = blake2b(data, digest_size=DIGEST_LEN).digest()
        return Picture(
            digest, data, header.width, header.height, header.format, header.orientation, path
        )

    def _header(self, data: bytes, path: str) -> Header:
        try:
            return decode_header(data, self._limits.max_pixels)
        except InvalidRequest as error:
            raise InvalidRequest(str(error), field=path) from None

    def _native_header(self, data: bytes, path: str) -> Header:
        limits = _with_file(_HEADER_LIMITS, data)
        return self._run(
            ReadHeader(data, self._limits.max_pixels), limits, path, "picture", FoundHeader
        ).header

    def prepare(self, picture: Picture, preparation: Preparation) -> list[Array]:
        """Decodes the picture and returns the arrays of `preparation`. Raises the same errors as
        `read`.
        """
        task = DecodePicture(
            picture.data, picture.format, picture.orientation, pickle.dumps(preparation)
        )
        cpu_s = _LEAST_S + picture.num_pixels / _PIXELS_PER_S
        memory_bytes = picture.num_pixels * BYTES_PER_PIXEL + _PREPARING_BYTES
        limits = Limits(
            wall_s=cpu_s * _WALL_TIMES,
            cpu_s=cpu_s,
            memory_bytes=memory_bytes,
            full_priority_s=_FULL_PRIORITY_S,
        )
        return _arrays(
            self._run(task, _with_file(limits, picture.data), picture.path, "picture", Prepared)
        )

    def frames(
        self,
        video: Video,
        content: Animation,
        numbers: Sequence[int],
        preparation: Preparation,
        timeout_s: float,
    ) -> Array:
        """Decodes the frames with these ascending numbers and stacks their arrays of `preparation`.

        `timeout_s` limits the wall time. Raises the same errors as `read`.
        """
        task = DecodeFrames(
            content.data, content.orientation, [*numbers], pickle.dumps(preparation)
        )
        memory_bytes = 2 * video.num_pixels * BYTES_PER_PIXEL + _PREPARING_BYTES
        limits = _with_file(Limits(wall_s=timeout_s, memory_bytes=memory_bytes), content.data)
        return np.stack(_arrays(self._run(task, limits, video.path, "video", Prepared)))

    def _run(self, task: Task, limits: Limits, path: str, noun: str, kind: type[Result]) -> Result:
        try:
            encoded = self._process.run(msgspec.msgpack.encode(task), limits)
        except JobLost as lost:
            raise EngineUnavailable(
                f"{noun}s cannot be read now: {lost}", retry_after_s=_RETRY_AFTER_S
            ) from lost
        except JobFailed as failed:  # faults of files are refusals, so this is a fault of ours
            raise RuntimeError(f"a {noun} could not be read: {failed}") from failed
        except JobEnded as ended:
            raise InvalidRequest(_complaint(ended, limits, noun), field=path) from ended
        outcome: Result | Refused = msgspec.msgpack.decode(encoded, type=kind | Refused)
        if isinstance(outcome, Refused):
            raise InvalidRequest(outcome.complaint, field=path)
        return outcome


def _complaint(ended: JobEnded, limits: Limits, noun: str) -> str:
    match ended:
        case TimeLimitExceeded() if noun == "video":
            return f"must be a video that is decoded in <= {limits.wall_s:g} s (video_timeout_s)"
        case TimeLimitExceeded(is_cpu_time=True):
            return f"must be a picture that is decoded in <= {limits.cpu_s:g} s of processor time"
        case TimeLimitExceeded():
            return f"must be a picture that is decoded in <= {limits.wall_s:g} s"
        case MemoryLimitExceeded():
            return f"must be a whole {noun}, given a file that takes too much memory"
        case _:
            return f"must be a whole {noun}, given a file that is cut off or broken"


def _with_file(limits: Limits, data: bytes) -> Limits:
    """Adds memory for the file: as it arrives, as it is decoded, and as Pillow reads it."""
    return replace(limits, memory_bytes=limits.memory_bytes + 4 * len(data))


def _arrays(prepared: Prepared) -> list[Array]:
    return [np.frombuffer(each.values, np.uint8).reshape(each.shape) for each in prepared.arrays]
