"""A video is known by what its file says before its frames are decoded: how many, how large, and when each is shown."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.animation import durations_of
from ouzel.prompts.media.parts import VideoPart
from ouzel.prompts.media.picture import DIGEST_LEN, Picture, PictureLimits, check_file_size

LIST_FPS = 2.0  # of frames that are sent one by one, where the client says nothing: as the Qwens' own API has it

ContainerFormat = Literal["mov", "matroska"]  # as FFmpeg names them

_PICTURES = re.compile(
    rb"\x89PNG|GIF8|\xff\xd8\xff|BM|RIFF....WEBP", re.DOTALL
)  # how files begin that Pillow reads
_NAMES = "MP4, MOV, WebM or Matroska, or a GIF, WEBP or PNG that moves"
_MATROSKA = b"\x1a\x45\xdf\xa3"
_MOV_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Animation:
    """A file of a moving picture that Pillow reads."""

    data: bytes = field(repr=False)
    orientation: int  # 1 to 8, as EXIF has it


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Container:
    """A file that has a video among its streams."""

    data: bytes = field(repr=False)
    format: ContainerFormat


@dataclass(frozen=True, slots=True)
class Video:
    digest: bytes  # of all that it is made of, BLAKE2b-128
    content: (
        Animation | Container | tuple[Picture, ...]
    )  # the last: frames that are sent one by one
    width: int  # of each frame, as it is shown
    height: int
    num_frames: int
    rate: float  # frames in a second, on average
    starts_s: Sequence[float] = field(repr=False)  # when each begins; empty: they are evenly spread
    path: str = field(compare=False)  # of the content part

    @property
    def num_pixels(self) -> int:
        """Counts those of a frame."""
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
    """Reads a file that Pillow knows; one that does not move is a video of one frame. Raises as `read`.

    `read` reads the header of a picture, of these bytes and this path.
    """
    check_file_size(len(data), path, limits)
    if not _PICTURES.match(data):
        raise InvalidRequest(
            f"must be a video ({_NAMES}), which its {len(data)} bytes are not", field=path
        )
    picture = read(data, path)
    try:
        durations = durations_of(data)
    except ValueError as error:
        raise InvalidRequest(f"must be a video that can be read: {error}", field=path) from None
    if durations is None:
        return of_frames([picture], VideoPart(path, ()), limits)
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
    """Raises InvalidRequest where not even two frames may be decoded."""
    if width < 1 or height < 1 or 2 * width * height > limits.max_pixels:
        raise InvalidRequest(
            f"must have frames of which two have <= {limits.max_pixels} pixels (max_media_pixels), given "
            f"{width}x{height}",
            field=path,
        )


def of_frames(frames: Sequence[Picture], part: VideoPart, limits: PictureLimits) -> Video:
    """Makes one of at least one frame. Raises InvalidRequest where their sizes differ, or are too many pixels."""
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
            f"must have <= {limits.max_pixels} pixels in all frames (max_media_pixels), given {len(frames)} of "
            f"{first.width}x{first.height}",
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
