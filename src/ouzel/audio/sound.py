"""Defines `Sound`, the samples of one sound file."""

import os
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE: Final = 16_000  # samples per second
SAMPLE_BYTES: Final = 2
_SCALE = np.float32(1 / 32768)
_MAX_IN_MEMORY = 2**20  # samples; more are written to a file


class SampledSound(Protocol):
    """Gives the samples of a sound, mono at SAMPLE_RATE."""

    @property
    def num_samples(self) -> int: ...

    def samples(self, begin: int, end: int) -> NDArray[np.float32]:
        """Returns the samples [begin, end); both bounds are cut to the sound."""


class Sound:
    """Holds mono samples at SAMPLE_RATE as 16-bit integers, in an unnamed file or in memory.

    The file is read in pieces and never mapped: a process that decoded a hostile file may still
    shorten it, and access to a lost part of a map would end the server. Methods may be called from
    many threads.
    """

    def __init__(self, content: "IO[bytes] | NDArray[np.int16]") -> None:
        """`content` is a file of little-endian int16 samples, or an array int16 [samples]. The
        sound owns the file and closes it.
        """
        self._content: IO[bytes] | NDArray[np.int16] | None = content
        self._lock = Lock()  # so that no other thread closes the file while it is read
        if isinstance(content, np.ndarray):
            self._num_samples = len(content)
        else:
            self._num_samples = os.fstat(content.fileno()).st_size // SAMPLE_BYTES

    @classmethod
    def from_samples(cls, samples: "NDArray[np.float32] | NDArray[np.int16]") -> Self:
        """Makes a sound from float32 [samples] in [-1, 1], or int16 [samples], at SAMPLE_RATE.

        Louder values are clipped. Long sounds are written to a file.
        """
        if samples.ndim != 1:
            raise ValueError(f"samples must have one dimension, given {samples.shape}")
        if len(samples) <= _MAX_IN_MEMORY:
            return cls(_convert(samples))
        file = TemporaryFile(buffering=0)  # noqa: SIM115  the sound closes it
        try:
            for begin in range(0, len(samples), _MAX_IN_MEMORY):
                write_samples(file, _convert(samples[begin : begin + _MAX_IN_MEMORY]))
            return cls(file)
        except BaseException:
            file.close()
            raise

    @property
    def num_samples(self) -> int:
        return self._num_samples

    @property
    def duration_s(self) -> float:
        return self._num_samples / SAMPLE_RATE

    def samples(self, begin: int, end: int) -> NDArray[np.float32]:
        """Returns the samples [begin, end) as float32 [end - begin] in [-1, 1).

        Both bounds are cut to the sound. Raises ValueError if the sound is closed, and OSError if
        its file cannot be read.
        """
        begin = min(max(begin, 0), self._num_samples)
        end = min(max(end, begin), self._num_samples)
        with self._lock:
            content = self._content
            if content is None:
                raise ValueError("the sound is closed")
            if isinstance(content, np.ndarray):
                integers = content[begin:end]
            else:
                integers = _read_samples(content.fileno(), begin, end)
        return integers.astype(np.float32) * _SCALE

    def close(self) -> None:
        """Closes the file, whose space the system then frees."""
        with self._lock:
            if self._content is not None and not isinstance(self._content, np.ndarray):
                self._content.close()
            self._content = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _convert(samples: "NDArray[np.float32] | NDArray[np.int16]") -> NDArray[np.int16]:
    """Returns a copy of the samples: the caller may change its array."""
    if samples.dtype == np.int16:
        return samples.astype(np.int16)
    return quantize(samples.astype(np.float32))


def quantize(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Rounds samples in [-1, 1] to 16-bit integers; louder samples are clipped."""
    scaled = np.rint(samples * np.float32(32768))
    integers: NDArray[np.int16] = np.clip(scaled, -32768, 32767).astype(np.int16)
    return integers


def write_samples(file: IO[bytes], samples: NDArray[np.int16]) -> None:
    """Appends samples to an unbuffered file. Raises OSError, for example without space."""
    rest = memoryview(samples.astype("<i2").tobytes())
    while rest:
        rest = rest[file.write(rest) :]


def _read_samples(fd: int, begin: int, end: int) -> NDArray[np.int16]:
    pieces = list[bytes]()
    offset, missing = begin * SAMPLE_BYTES, (end - begin) * SAMPLE_BYTES
    while missing:
        piece = os.pread(fd, missing, offset)
        if not piece:
            raise OSError("the temporary file of a sound has lost its end")
        pieces.append(piece)
        offset += len(piece)
        missing -= len(piece)
    samples: NDArray[np.int16] = np.frombuffer(b"".join(pieces), "<i2")
    return samples
