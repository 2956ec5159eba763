"""Reads a video's container with FFmpeg, in a limited process: its facts, or some of its frames.

FFmpeg gets only the bytes and the container's format: it opens no address and no file. Only common
codecs are decoded. No other module of this room imports PyAV, the extra `video`.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from math import isfinite
from typing import TYPE_CHECKING, assert_never

import msgspec

from ouzel.prompts.media.file_process import Refused
from ouzel.prompts.media.frame_display import read_frame_orientation, shown_size
from ouzel.prompts.media.orientation import UPRIGHT
from ouzel.prompts.media.pixels import turned

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from PIL.Image import Image

CODECS = ("h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mjpeg")
MAX_PACKETS = 500_000  # four hours of 30 frames a second
# Frames per second; screen recordings without movement have few.
_MIN_RATE, _MAX_RATE = 1e-4, 1000.0
_HALF = 0.5


class ReadFacts(msgspec.Struct, frozen=True, tag="facts"):
    data: bytes
    format: str  # FFmpeg's name of the container format
    max_frame_pixels: int


class ReadFrames(msgspec.Struct, frozen=True, tag="frames"):
    data: bytes
    format: str
    numbers: list[int]  # frame numbers, ascending
    size: tuple[int, int]  # width and height of the returned frames
    resample: int  # the number of Pillow's filter


class Facts(msgspec.Struct, frozen=True, tag="facts"):
    width: int  # width of the displayed frames
    height: int
    num_frames: int
    rate: float  # average number of frames per second
    starts_s: bytes = b""  # the start of each frame, float64; empty if the frames are evenly spread


class Frames(msgspec.Struct, frozen=True, tag="frames"):
    pixels: bytes  # uint8 [frames, height, width, 3]


Task = ReadFacts | ReadFrames
Outcome = Facts | Frames | Refused


class _Refusal(Exception):
    """The container cannot be used; the message is the reason."""


def create_container_job() -> Callable[[bytes], bytes]:
    """Returns a function that runs an encoded Task and returns its encoded Outcome."""
    import av  # noqa: PLC0415  an extra
    from PIL import Image  # noqa: F401, PLC0415  so that the first job does not wait for it

    av.logging.set_level(None)

    def run(encoded: bytes) -> bytes:
        return msgspec.msgpack.encode(_outcome(msgspec.msgpack.decode(encoded, type=Task)))

    return run


def _outcome(task: Task) -> Outcome:
    import av  # noqa: PLC0415  an extra

    try:
        with av.open(BytesIO(task.data), mode="r", format=task.format) as container:
            stream = _stream(container)
            match task:
                case ReadFacts():
                    return _facts(container, stream, task.max_frame_pixels)
                case ReadFrames():
                    return _frames(container, stream, task)
                case _:
                    assert_never(task)
    except _Refusal as refusal:
        return Refused(str(refusal))
    except (av.FFmpegError, StopIteration, ValueError):
        return Refused("that is complete, given a file that is cut off or broken")


def _stream(container: "InputContainer") -> "VideoStream":
    import av  # noqa: PLC0415  an extra

    stream = container.streams.best("video")  # never a cover picture
    if stream is None:
        raise _Refusal("with frames, given a file without")
    assert isinstance(stream, av.VideoStream)
    codec = stream.codec.canonical_name
    if codec not in CODECS:
        raise _Refusal(f"of the codecs {', '.join(CODECS)}, given {codec}")
    stream.thread_type = "NONE"
    stream.codec_context.thread_count = 1
    return stream


def _facts(container: "InputContainer", stream: "VideoStream", max_frame_pixels: int) -> Facts:
    """Counts the frames, because a header's number may be wrong."""
    context = stream.codec_context
    if context.width * context.height > max_frame_pixels:
        return Facts(context.width, context.height, 1, 1.0)  # the caller refuses this size
    times, _ = _packets(container, stream)
    container.seek(0)
    first = next(container.decode(stream))
    width, height = shown_size(first, stream.sample_aspect_ratio)
    seconds_per_unit = float(stream.time_base or 0)
    rate, starts_s = _pace(
        [(time - times[0]) * seconds_per_unit for time in times],
        float(stream.average_rate or stream.guessed_rate or 0),
    )
    if not isfinite(rate) or not _MIN_RATE <= rate <= _MAX_RATE:
        raise _Refusal(f"of {_MIN_RATE:g} to {_MAX_RATE:g} frames a second, given {rate:g}")
    return Facts(width, height, len(times), rate, array("d", starts_s).tobytes())


def _pace(starts_s: Sequence[float], declared_rate: float) -> tuple[float, Sequence[float]]:
    """Returns the frames per second, and the start of each frame unless they are evenly spread.

    The rate in the header is used if the frames keep to it: screen recorders and browsers write any
    rate.
    """
    rate = (len(starts_s) - 1) / starts_s[-1] if starts_s[-1] else declared_rate
    if _is_even(starts_s, declared_rate):
        return declared_rate, ()
    return rate, () if _is_even(starts_s, rate) else starts_s


def _is_even(starts_s: Sequence[float], rate: float) -> bool:
    """Tells whether each frame begins less than half a frame from its time at this rate."""
    return all(abs(start_s * rate - number) < _HALF for number, start_s in enumerate(starts_s))


def _packets(container: "InputContainer", stream: "VideoStream") -> tuple[list[int], list[int]]:
    """Returns the ascending times of all frames, and the times of the frames at which decoding can
    begin.
    """
    times, starts = list[int](), list[int]()
    for packet in container.demux(stream):
        if packet.pts is None or not packet.size or packet.is_discard:
            continue
        times.append(packet.pts)
        if packet.is_keyframe:
            starts.append(packet.pts)
        if len(times) > MAX_PACKETS:
            raise _Refusal(f"of <= {MAX_PACKETS} frames, given more")
    if not times:
        raise _Refusal("with frames, given a file without")
    return sorted(times), sorted(starts)


def _frames(container: "InputContainer", stream: "VideoStream", task: ReadFrames) -> Frames:
    times, starts = _packets(container, stream)
    size: tuple[int, int] | None = None
    orientation, pieces = UPRIGHT, list[bytes]()
    for frame in _at_times(container, stream, [times[number] for number in task.numbers], starts):
        if size is None:
            size, orientation = (frame.width, frame.height), read_frame_orientation(frame)
        if (frame.width, frame.height) != size:
            raise _Refusal(
                f"with frames of one size, given {size[0]}x{size[1]} "
                f"and {frame.width}x{frame.height}"
            )
        pieces.append(
            turned(frame_image(frame), orientation).resize(task.size, task.resample).tobytes()
        )
    return Frames(b"".join(pieces))


def _at_times(
    container: "InputContainer", stream: "VideoStream", times: Sequence[int], starts: Sequence[int]
) -> "Iterator[VideoFrame]":
    """Yields the frame of each time. Frames between two of them are skipped if possible."""
    container.seek(starts[0] if starts else 0, stream=stream)
    decoded = container.decode(stream)
    frame = next(decoded)
    for time in times:
        place = bisect_right(starts, time) - 1
        if place >= 0 and frame.pts is not None and starts[place] > frame.pts:
            container.seek(starts[place], stream=stream)
            decoded = container.decode(stream)
            frame = next(decoded)
        while frame.pts is None or frame.pts < time:
            frame = next(decoded)
        yield frame


def frame_image(frame: "VideoFrame") -> "Image":
    """Converts a frame in this thread; FFmpeg would start up to 16 threads for each frame."""
    # PyAV has no types for the arguments
    image: Image = frame.to_image(threads=1)  # type: ignore[no-untyped-call]
    return image
