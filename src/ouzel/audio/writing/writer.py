"""Makes the writer of a sound file."""

from typing import Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.writing.ffmpeg_writer import FfmpegWriter
from ouzel.audio.writing.formats import FileFormat
from ouzel.audio.writing.wav_writer import PcmWriter, WavWriter


class SoundWriter(Protocol):
    """Turns blocks of samples into the bytes of one sound file. One thread uses it at a time."""

    def write(self, samples: NDArray[np.float32]) -> bytes:
        """Takes float32 [samples], mono, and returns the bytes that are complete."""
        ...

    def finish(self) -> bytes:
        """Returns the rest of the file."""
        ...

    def close(self) -> None:
        """Frees the encoder, also in the middle of a file; further calls do nothing."""
        ...


def make_writer(format_: FileFormat, rate: int) -> SoundWriter:
    """Makes the writer of a file with samples at `rate` Hz."""
    match format_:
        case "pcm":
            return PcmWriter()
        case "wav":
            return WavWriter(rate)
        case "wav_float":
            return WavWriter(rate, has_floats=True)
        case "mp3" | "opus" | "aac" | "flac":
            return FfmpegWriter(format_, rate)
        case unreachable:
            assert_never(unreachable)
