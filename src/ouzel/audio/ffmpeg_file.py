"""Reads sound files with FFmpeg, in the limited process.

FFmpeg gets an open file and the name of the format: it opens no address and no file. Only common
codecs are decoded, in one thread. No other module of this room imports PyAV, the extra `audio`.
"""

from collections.abc import Iterator
from errno import ENOMEM
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.refusals import Refusal, RefusalKind
from ouzel.audio.sound import SAMPLE_RATE
from ouzel.audio.sound_rates import check_rate

if TYPE_CHECKING:
    from av import AudioFrame, AudioResampler
    from av.audio.stream import AudioStream
    from av.container import InputContainer

CODECS = ("aac", "alac", "flac", "mp1", "mp2", "mp3", "opus", "vorbis")
_READS_ALL_TAGS = 19  # the first version of PyAV that reads tags of any bytes
_PCM = "pcm_"  # the beginning of the names of many codecs without compression


def prepare_ffmpeg() -> None:
    """Imports PyAV, so that the first job does not wait for it. Raises ImportError."""
    import av  # noqa: PLC0415  an extra

    av.logging.set_level(None)


def read_with_ffmpeg(file: BinaryIO, format_name: str, max_s: float) -> Iterator[NDArray[np.int16]]:
    """Yields the mono samples at SAMPLE_RATE in pieces. Raises Refusal.

    The first stream that FFmpeg recommends is read. A damaged packet is skipped, as players do; a
    file with more damaged packets than frames is refused.
    """
    import av  # noqa: PLC0415  an extra

    try:
        with _open(file, format_name) as container:
            yield from _read_stream(container, _find_stream(container), max_s)
    except (av.FFmpegError, ValueError) as error:
        _raise_for_memory(error)
        raise Refusal(RefusalKind.DAMAGED, "a file that is cut off or broken") from error


def _open(file: BinaryIO, format_name: str) -> "InputContainer":
    """Opens a container. PyAV 18 refuses tags that are not UTF-8 unless it gets another rule."""
    import av  # noqa: PLC0415  an extra

    is_old = int(av.__version__.partition(".")[0]) < _READS_ALL_TAGS
    # The stubs of one version only have the argument.
    options: dict[str, Any] = {"metadata_errors": "replace"} if is_old else {}
    container: InputContainer = av.open(file, mode="r", format=format_name, **options)
    return container


def _find_stream(container: "InputContainer") -> "AudioStream":
    import av  # noqa: PLC0415  an extra

    stream = container.streams.best("audio")
    if stream is None:
        raise Refusal(RefusalKind.NO_STREAM)
    assert isinstance(stream, av.AudioStream)
    # A stream without a decoder has no codec, against the stubs of PyAV.
    codec = "an unknown codec" if not stream.codec_context else stream.codec.canonical_name
    if codec not in CODECS and not codec.startswith(_PCM):
        raise Refusal(
            RefusalKind.UNKNOWN,
            f"must have sound in one of the codecs {', '.join(CODECS)}, PCM, given {codec}",
        )
    stream.codec_context.thread_type = "NONE"
    stream.codec_context.thread_count = 1
    return stream


def _read_stream(
    container: "InputContainer", stream: "AudioStream", max_s: float
) -> Iterator[NDArray[np.int16]]:
    resampling = _Resampling()
    duration_s = 0.0
    num_frames = num_damaged = 0
    for frames in _decode(container, stream):
        if frames is None:
            num_damaged += 1
            continue
        for frame in frames:
            check_rate(frame.sample_rate)
            # The resampler would make all of this sound at once, so its length is checked before.
            duration_s += frame.samples / frame.sample_rate
            if duration_s > max_s:
                raise Refusal(RefusalKind.TOO_LONG)
            num_frames += 1
            yield from resampling.push(frame)
    yield from resampling.finish()
    if num_damaged > num_frames:
        raise Refusal(RefusalKind.DAMAGED, f"a file with {num_damaged} broken packets")


def _decode(
    container: "InputContainer", stream: "AudioStream"
) -> "Iterator[list[AudioFrame] | None]":
    """Yields the frames of each packet, and None for a damaged packet.

    A file that is cut off ends with its last packet.
    """
    import av  # noqa: PLC0415  an extra

    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
        except av.FFmpegError:  # the rest of the file has no packets
            packet = None
        try:
            frames = stream.codec_context.decode(packet)
        except av.FFmpegError as error:
            _raise_for_memory(error)
            yield None
            frames = []
        yield frames
        if packet is None or not packet.size:
            return


def _raise_for_memory(error: Exception) -> None:
    """Raises MemoryError if FFmpeg reports that the process has no more memory."""
    if getattr(error, "errno", None) == ENOMEM:
        raise MemoryError from error


class _Resampling:
    """Makes mono samples, also of a stream that changes its rate or its channels."""

    def __init__(self) -> None:
        self._resampler: AudioResampler | None = None
        self._kind: tuple[object, ...] | None = None

    def push(self, frame: "AudioFrame") -> Iterator[NDArray[np.int16]]:
        import av  # noqa: PLC0415  an extra

        kind = (frame.format.name, frame.layout.name, frame.layout.nb_channels, frame.sample_rate)
        if kind != self._kind:
            yield from self.finish()
            self._resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
            self._kind = kind
        frame.pts = None  # gaps in the times of the file add no samples
        yield from self._run(frame)

    def finish(self) -> Iterator[NDArray[np.int16]]:
        """Yields the samples that the filter still holds."""
        if self._resampler is not None:
            yield from self._run(None)

    def _run(self, frame: "AudioFrame | None") -> Iterator[NDArray[np.int16]]:
        assert self._resampler is not None
        for made in self._resampler.resample(frame):
            yield made.to_ndarray().astype(np.int16, copy=False).reshape(-1)
