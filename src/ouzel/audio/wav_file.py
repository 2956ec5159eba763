"""Reads WAV files: RIFF, and RF64 for files over 4 GiB.

The layout is in "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft,
1991), WAVE_FORMAT_EXTENSIBLE in "Multiple channel audio data and WAVE files" (Microsoft, 2001).
Every number of a header is untrusted: the samples end with the file at the latest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from
from typing import BinaryIO

import numpy as np

from ouzel.audio.refusals import Refusal, RefusalKind
from ouzel.audio.sound_rates import check_rate
from ouzel.audio.wav_samples import SAMPLE_SIZES, Encoding, Samples, make_converter

_PIECE_BYTES = 2**20
_EXTENSIBLE = 0xFFFE
# The rest of the GUID behind the format tag in an extensible format.
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)  # sizes in a file that was written to a pipe
_MAX_CHUNKS = 10_000


@dataclass(frozen=True, slots=True)
class WavFormat:
    """The encoding of the samples in a WAV file."""

    encoding: Encoding
    num_channels: int
    rate: int  # frames per second
    sample_bytes: int

    @property
    def frame_bytes(self) -> int:
        """Returns the bytes of one sample of every channel."""
        return self.num_channels * self.sample_bytes


def read_wav(file: BinaryIO) -> tuple[WavFormat, Iterator[Samples]]:
    """Returns the format, and the mono samples in pieces at the file's own rate.

    The mono sample is the mean of the channels. Raises Refusal.
    """
    format_, num_bytes = _find_samples(file)
    return format_, _read_pieces(file, format_, num_bytes)


def _find_samples(file: BinaryIO) -> tuple[WavFormat, int | None]:
    """Moves the file to its first sample.

    Returns the format and the number of bytes; None means up to the end of the file.
    """
    head = file.read(12)
    if len(head) < 12:
        raise Refusal(RefusalKind.DAMAGED, "a WAV file that ends in its header")
    is_streamed = unpack_from("<I", head, 4)[0] in _UNKNOWN_SIZES
    format_: WavFormat | None = None
    for _ in range(_MAX_CHUNKS):
        chunk = file.read(8)
        if len(chunk) < 8:
            raise Refusal(RefusalKind.DAMAGED, "a WAV file without samples (no data chunk)")
        name, size = chunk[:4], unpack_from("<I", chunk, 4)[0]
        if name == b"data":
            if format_ is None:
                raise Refusal(RefusalKind.DAMAGED, "a WAV file without a format (no fmt chunk)")
            is_open = size == 0xFFFFFFFF or (size == 0 and is_streamed)
            return format_, None if is_open else size
        begin = file.tell()
        if name == b"fmt ":
            format_ = _read_format(file.read(min(size, 64)))
        file.seek(begin + size + size % 2)
    raise Refusal(RefusalKind.DAMAGED, f"a WAV file with more than {_MAX_CHUNKS} chunks")


def _read_format(chunk: bytes) -> WavFormat:
    if len(chunk) < 16:
        raise Refusal(RefusalKind.DAMAGED, "a WAV file with a short fmt chunk")
    tag, num_channels, rate, _, frame_bytes, num_bits = unpack_from("<HHIIHH", chunk)
    if tag == _EXTENSIBLE and chunk[26:40] == _GUID_TAIL:
        tag = unpack_from("<H", chunk, 24)[0]
    if tag not in {encoding.value for encoding in Encoding}:
        raise Refusal(
            RefusalKind.UNKNOWN,
            "must be a WAV file with PCM, float, A-law or mu-law samples, "
            f"given the format tag 0x{tag:04x}",
        )
    if not num_channels:
        raise Refusal(RefusalKind.DAMAGED, "a WAV file with 0 channels")
    check_rate(rate)
    encoding = Encoding(tag)
    # Samples of 20 bits, for example, lie at the upper end of 3 or 4 bytes.
    sample_bytes, rest = divmod(frame_bytes, num_channels)
    if rest or sample_bytes not in SAMPLE_SIZES[encoding] or 8 * sample_bytes < num_bits:
        sample_bytes = (num_bits + 7) // 8
    if sample_bytes not in SAMPLE_SIZES[encoding]:
        allowed = ", ".join(str(8 * size) for size in SAMPLE_SIZES[encoding])
        raise Refusal(
            RefusalKind.UNKNOWN,
            f"must be a WAV file whose samples of this encoding have {allowed} bits, "
            f"given {num_bits}",
        )
    return WavFormat(encoding, num_channels, rate, sample_bytes)


def _read_pieces(file: BinaryIO, format_: WavFormat, num_bytes: int | None) -> Iterator[Samples]:
    """Yields the mono samples; an incomplete frame at the end is dropped."""
    convert = make_converter(format_.encoding, format_.sample_bytes)
    frame_bytes = format_.frame_bytes
    piece_bytes = max(1, _PIECE_BYTES // frame_bytes) * frame_bytes
    while num_bytes is None or num_bytes > 0:
        data = file.read(piece_bytes if num_bytes is None else min(piece_bytes, num_bytes))
        if num_bytes is not None:
            num_bytes -= len(data)
        data = data[: len(data) // frame_bytes * frame_bytes]
        if not data:
            return
        samples = convert(data)
        if format_.num_channels > 1:
            samples = samples.reshape(-1, format_.num_channels).mean(axis=1, dtype=np.float32)
        yield samples
