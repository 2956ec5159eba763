"""Writes samples without compression: 16-bit PCM, and WAV files of 16-bit integers or floats.

The layout is in "Multimedia Programming Interface and Data Specifications 1.0" (IBM and Microsoft,
1991). A file whose length is unknown at its first byte has the sizes 0xFFFFFFFF; players then read
to the end.
"""

from struct import pack, pack_into

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import quantize
from ouzel.audio.wav_samples import Encoding

_UNKNOWN_SIZE = 0xFFFFFFFF
_HEADER_BYTES = 44
_RIFF_SIZE_AT, _DATA_SIZE_AT = 4, 40  # places of both sizes


class PcmWriter:
    """Writes samples as little-endian 16-bit integers."""

    def write(self, samples: NDArray[np.float32]) -> bytes:
        return quantize(clip_samples(samples)).astype("<i2").tobytes()

    def finish(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


class WavWriter:
    """Writes a mono WAV file with sizes 0xFFFFFFFF; `fill_sizes` replaces them at the end."""

    def __init__(self, rate: int, *, has_floats: bool = False) -> None:
        """With `has_floats` the samples are float32, else 16-bit integers."""
        self._has_floats = has_floats
        self._header = _make_header(rate, has_floats=has_floats)  # empty once it is written

    def write(self, samples: NDArray[np.float32]) -> bytes:
        clipped = clip_samples(samples)
        floats = clipped.astype("<f4").tobytes
        data = floats() if self._has_floats else quantize(clipped).astype("<i2").tobytes()
        return self._take_header() + data

    def finish(self) -> bytes:
        return self._take_header()

    def close(self) -> None:
        pass

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        return header


def fill_sizes(first: bytearray, num_bytes: int) -> None:
    """Writes the true sizes into the header of a file of `WavWriter`.

    `first` is the first piece of the file, which has `num_bytes`. A file too long for its 32-bit
    sizes keeps the sizes 0xFFFFFFFF.
    """
    if num_bytes - 8 < _UNKNOWN_SIZE:
        pack_into("<I", first, _RIFF_SIZE_AT, num_bytes - 8)
        pack_into("<I", first, _DATA_SIZE_AT, num_bytes - _HEADER_BYTES)


def clip_samples(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns samples within [-1, 1]; values that are no numbers become silence."""
    clipped: NDArray[np.float32] = np.nan_to_num(np.clip(samples, -1, 1)).astype(np.float32)
    return clipped


def _make_header(rate: int, *, has_floats: bool) -> bytes:
    encoding = Encoding.FLOATS if has_floats else Encoding.INTEGERS
    frame_bytes = 4 if has_floats else 2
    format_ = pack(
        "<HHIIHH", encoding.value, 1, rate, rate * frame_bytes, frame_bytes, 8 * frame_bytes
    )
    riff = b"RIFF" + pack("<I", _UNKNOWN_SIZE) + b"WAVE"
    return riff + b"fmt " + pack("<I", len(format_)) + format_ + b"data" + pack("<I", _UNKNOWN_SIZE)
