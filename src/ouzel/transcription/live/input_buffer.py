"""Holds the samples of a session that belong to no turn yet."""

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SAMPLE_BYTES, Sound, quantize


class InputBuffer:
    """Positions count the samples since the session began, at 16 kHz."""

    def __init__(self) -> None:
        self.begin = 0
        self._content = bytearray()  # int16 in the machine's byte order

    @property
    def end(self) -> int:
        return self.begin + self.num_samples

    @property
    def num_samples(self) -> int:
        return len(self._content) // SAMPLE_BYTES

    @property
    def num_bytes(self) -> int:
        return len(self._content)

    def append(self, samples: NDArray[np.float32]) -> None:
        self._content += quantize(samples).tobytes()

    def drop_before(self, position: int) -> None:
        """Drops the samples before a position; both bounds of the buffer limit it."""
        position = min(max(position, self.begin), self.end)
        del self._content[: (position - self.begin) * SAMPLE_BYTES]
        self.begin = position

    def take(self, end: int) -> Sound:
        """Removes the samples before `end`, and returns them as a sound."""
        size = (min(max(end, self.begin), self.end) - self.begin) * SAMPLE_BYTES
        samples = np.frombuffer(bytes(self._content[:size]), np.int16)
        self.drop_before(end)
        return Sound.from_samples(samples)
