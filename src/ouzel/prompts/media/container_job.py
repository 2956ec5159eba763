"""A video's container is read by FFmpeg in a limited process, which gives what it says, or some of its frames.

FFmpeg gets the bytes, the container's format and nothing else: it opens no address and no file. Only usual codecs
are decoded. Nothing else here imports PyAV, the extra `video`.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from math import isfinite
from typing import TYPE_CHECKING, assert_never

import msgspec

from ouzel.prompts.media.file_process import Refused
from ouzel.prompts.media.frame_display import orientation_of, shown_size
from ouzel.prompts.media.orientation import UPRIGHT
from ouzel.prompts.media.pixels import turned

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from PIL.Image import Image

CODECS = ("h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mjpeg")
MAX_PACKETS = 500_000  # four hours of 30 frames a second
_MIN_RATE, _MAX_RATE = (
    1e-4,
    1000.0,
)  # frames a second: recordings of screens that stand still have few
_HALF = 0.5


class ReadFacts(msgspec.Struct, frozen=True, tag="facts"):
    data: bytes
    format: str  # as FFmpeg names it
    max_frame_pixels: int


class ReadFrames(msgspec.Struct, frozen=True, tag="frames"):
    data: bytes
    format: str
    numbers: list[int]  # ascending
    size: tuple[int, int]  # width and height that they get
    resample: int  # the number of a filter of Pillow's


class Facts(msgspec.Struct, frozen=True, tag="facts"):
    width: int  # as frames are shown
    height: int
    num_frames: int
    rate: float  # frames in a second, on average
    starts_s: bytes = b""  # float64, when each begins; empty: they are evenly spread


class Frames(msgspec.Struct, frozen=True, tag="frames"):
    pixels: bytes  # uint8 [frames, height, width, 3]


Task = ReadFacts | ReadFrames
Outcome = Facts | Frames | Refused


class _Refusal(Exception):
    """Its text is a reason."""


def create_container_job() -> Callable[[bytes], bytes]:
    """Returns a function that takes an encoded Task and returns an encoded Outcome."""
    import av  # noqa: PLC0415  an extra
    from PIL import Image  # noqa: F401, PLC0415  so that jobs begin with it

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
        return Refused("that is whole, given a file that is cut off or broken")


def _stream(container: "InputContainer") -> "VideoStream":
    import av  # noqa: PLC0415  an extra

    stream = container.streams.best("video")  # which no cover is
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
    """The frames are counted, for headers may say anything."""
    context = stream.codec_context
    if context.width * context.height > max_frame_pixels:
        return Facts(context.width, context.height, 1, 1.0)  # who asked refuses it
    times, _ = _packets(container, stream)
    container.seek(0)
    first = next(container.decode(stream))
    width, height = shown_size(first, stream.sample_aspect_ratio)
    seconds_of = float(stream.time_base or 0)
    rate, starts_s = _pace(
        [(time - times[0]) * seconds_of for time in times],
        float(stream.average_rate or stream.guessed_rate or 0),
    )
    if not isfinite(rate) or not _MIN_RATE <= rate <= _MAX_RATE:
        raise _Refusal(f"of {_MIN_RATE:g} to {_MAX_RATE:g} frames a second, given {rate:g}")
    return Facts(width, height, len(times), rate, array("d", starts_s).tobytes())


def _pace(starts_s: Sequence[float], declared_rate: float) -> tuple[float, Sequence[float]]:
    """Returns how many frames a second has, and when each begins where they are not evenly spread.

    What the header declares counts where the frames keep to it: recorders of screens and browsers write anything.
    """
    rate = (len(starts_s) - 1) / starts_s[-1] if starts_s[-1] else declared_rate
    if _is_even(starts_s, declared_rate):
        return declared_rate, ()
    return rate, () if _is_even(starts_s, rate) else starts_s


def _is_even(starts_s: Sequence[float], rate: float) -> bool:
    """Tells whether each begins less than half a frame beside its time."""
    return all(abs(start_s * rate - number) < _HALF for number, start_s in enumerate(starts_s))


def _packets(container: "InputContainer", stream: "VideoStream") -> tuple[list[int], list[int]]:
    """Returns the times of all frames in the order in which they are shown, and those from which decoding can begin."""
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
            size, orientation = (frame.width, frame.height), orientation_of(frame)
        if (frame.width, frame.height) != size:
            raise _Refusal(
                f"whose frames are equally large, given {size[0]}x{size[1]} and {frame.width}x{frame.height}"
            )
        pieces.append(
            turned(frame_image(frame), orientation).resize(task.size, task.resample).tobytes()
        )
    return Frames(b"".join(pieces))


def _at_times(
    container: "InputContainer", stream: "VideoStream", times: Sequence[int], starts: Sequence[int]
) -> "Iterator[VideoFrame]":
    """Yields the frame of each time; what lies between two of them is left out as far as it can be."""
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
    """It is made in this thread: for each frame FFmpeg would start as many as there are processors, up to 16."""
    image: Image = frame.to_image(threads=1)  # type: ignore[no-untyped-call]  # it says nothing of its arguments
    return image
