"""Decodes written sound files with FFmpeg, and compares their sound."""

import io
from collections.abc import Iterable
from itertools import pairwise

import av
import numpy as np
from numpy.typing import NDArray

from ouzel.audio.writing.formats import FileFormat
from ouzel.audio.writing.writer import SoundWriter

RATE = 24_000
# FFmpeg's names of the demuxers
DEMUXERS: dict[FileFormat, str] = {
    "mp3": "mp3",
    "opus": "ogg",
    "aac": "aac",
    "flac": "flac",
    "wav": "wav",
    "wav_float": "wav",
    "pcm": "s16le",
}


def write_blocks(writer: SoundWriter, blocks: Iterable[NDArray[np.float32]]) -> list[bytes]:
    """Returns the bytes of each block, and the rest of the file at last."""
    pieces = [writer.write(block) for block in blocks]
    return [*pieces, writer.finish()]


def decode_file(data: bytes, format_: FileFormat) -> NDArray[np.float32]:
    """Returns the mono samples of a file at RATE."""
    options = {"sample_rate": str(RATE), "ch_layout": "mono"} if format_ == "pcm" else {}
    resampler = av.AudioResampler("flt", "mono", RATE)
    pieces: list[NDArray[np.float32]] = []
    with av.open(io.BytesIO(data), "r", format=DEMUXERS[format_], options=options) as container:
        for frame in container.decode(audio=0):
            frame.pts = None
            pieces += [made.to_ndarray()[0] for made in resampler.resample(frame)]
    pieces += [made.to_ndarray()[0] for made in resampler.resample(None)]
    return np.concatenate(pieces) if pieces else np.empty(0, np.float32)


def find_frequencies(samples: NDArray[np.float32], places_s: list[float]) -> list[float]:
    """Returns the loudest frequency in Hz between each two times."""
    found = []
    for begin_s, end_s in pairwise(places_s):
        part = samples[round(begin_s * RATE) : round(end_s * RATE)]
        loudness = np.abs(np.fft.rfft(part * np.hanning(len(part))))
        found.append(float(np.argmax(loudness) * RATE / len(part)))
    return found
