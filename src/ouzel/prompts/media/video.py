"""A video and its facts, read before its frames are decoded: number, size and times of the
frames.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.animation import read_frame_durations
from ouzel.prompts.media.parts import VideoPart
from ouzel.prompts.media.picture import DIGEST_LEN, Picture, PictureLimits, check_file_size

# Frames per second of a list of frames, if the client does not say (the value of Qwen's API).
LIST_FPS = 2.0

ContainerFormat = Literal["mov", "matroska"]  # FFmpeg's names

# The beginnings of files that Pillow reads.
_PICTURES = re.compile(rb"\x89PNG|GIF8|\xff\xd8\xff|BM|RIFF....WEBP", re.DOTALL)
_NAMES = "MP4, MOV, WebM or Matroska, or a GIF, WEBP or PNG that moves"
_MATROSKA = b"\x1a\x45\xdf\xa3"
_MOV_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Animation:
    """The file of an animated picture, which Pillow reads."""

    data: bytes = field(repr=False)
    orientation: int  # 1 to 8, as in EXIF


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Container:
    """A file with a video among its streams."""

    data: bytes = field(repr=False)
    format: ContainerFormat


@dataclass(frozen=True, slots=True)
class Video:
    digest: bytes  # BLAKE2b-128 of the file or of all frames
    content: Animation | Container | tuple[Picture, ...]  # the tuple: a list of frames
    width: int  # width of each frame for display
    height: int
    num_frames: int
    rate: float  # average number of frames per second
    starts_s: Sequence[float] = field(repr=False)  # starts of the frames; empty: evenly spread
    path: str = field(compare=False)  # the content part

    @property
    def num_pixels(self) -> int:
        """Returns the number of pixels of one frame."""
        return self.width * self.height

    def time_s(self, number: int) -> float:
        return self.starts_s[number] if self.starts_s else number / self.rate


def container_format(data: bytes) -> ContainerFormat | None:
    if data.startswith(_MATROSKA):
        return "matroska"
    return "mov" if data[4:8] in _MOV_BOXES else None


def read_animation(
    data: bytes, path: str, limits: PictureLimits, read: Callable[[bytes, str], Picture]
) -> Video:
    """Reads a file that Pillow knows. A picture that is not animated is a video of one frame.

    `read` reads the header of a picture from its bytes and path. Raises the same errors as `read`.
    """
    check_file_size(len(data), path, limits)
    if not _PICTURES.match(data):
        raise InvalidRequest(
            f"must be a video ({_NAMES}), given {len(data)} bytes of another format", field=path
        )
    picture = read(data, path)
    try:
        durations = read_frame_durations(data)
    except ValueError as error:
        raise InvalidRequest(f"must be a video that can be read: {error}", field=path) from None
    if durations is None:
        return make_frame_list_video([picture], VideoPart(path, ()), limits)
    check_frame_size(picture.width, picture.height, path, limits)
    is_even = len(set(durations)) == 1
    return Video(
        digest=picture.digest,
        content=Animation(data, picture.orientation),
        width=picture.width,
        height=picture.height,
        num_frames=len(durations),
        rate=1 / durations[0] if is_even else len(durations) / sum(durations),
        starts_s=() if is_even else (0.0, *accumulate(durations[:-1])),
        path=path,
    )


def check_frame_size(width: int, height: int, path: str, limits: PictureLimits) -> None:
    """Raises InvalidRequest if the limit does not even allow two frames of this size."""
    if width < 1 or height < 1 or 2 * width * height > limits.max_pixels:
        raise InvalidRequest(
            f"must have frames of which two have <= {limits.max_pixels} pixels "
            f"(max_media_pixels), given {width}x{height}",
            field=path,
        )


def make_frame_list_video(
    frames: Sequence[Picture], part: VideoPart, limits: PictureLimits
) -> Video:
    """Makes a video from at least one frame.

    Raises InvalidRequest if the frames differ in size, or have too many pixels.
    """
    first, rate = frames[0], part.fps or LIST_FPS
    for frame in frames:
        if (frame.width, frame.height) != (first.width, first.height):
            raise InvalidRequest(
                f"must be as large as the first frame, {first.width}x{first.height}, given "
                f"{frame.width}x{frame.height}",
                field=frame.path,
            )
    if len(frames) > 1 and sum(frame.num_pixels for frame in frames) > limits.max_pixels:
        raise InvalidRequest(
            f"must have <= {limits.max_pixels} pixels in all frames (max_media_pixels), "
            f"given {len(frames)} frames of {first.width}x{first.height}",
            field=part.path,
        )
    digest = blake2b(b"".join(frame.digest for frame in frames), digest_size=DIGEST_LEN).digest()
    return Video(
        digest=digest,
        content=tuple(frames),
        width=first.width,
        height=first.height,
        num_frames=len(frames),
        rate=rate,
        starts_s=(),
        path=part.path,
    )
