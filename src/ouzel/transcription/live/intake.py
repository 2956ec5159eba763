"""Converts the bytes of a sound that arrives in pieces to mono samples at 16 kHz."""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.resampler import Resampler
from ouzel.audio.wav_samples import Encoding, make_converter


class InputFormat(Enum):
    """The formats of OpenAI's realtime sessions. The values are OpenAI's names."""

    PCM = "audio/pcm"
    PCMU = "audio/pcmu"
    PCMA = "audio/pcma"


# encoding, bytes of a sample, samples per second
_FACTS = {
    InputFormat.PCM: (Encoding.INTEGERS, 2, 24_000),
    InputFormat.PCMU: (Encoding.MU_LAW, 1, 8_000),
    InputFormat.PCMA: (Encoding.A_LAW, 1, 8_000),
}


class Intake:
    """Converts one stream. A piece may end within a sample."""

    def __init__(self, form: InputFormat) -> None:
        encoding, self._sample_bytes, rate = _FACTS[form]
        self._convert = make_converter(encoding, self._sample_bytes)
        self._resampler = Resampler(rate)
        self._rest = b""  # the first bytes of an incomplete sample

    def push(self, data: bytes) -> NDArray[np.float32]:
        """Returns the samples that are complete, float32 [samples] in [-1, 1]."""
        data = self._rest + data
        whole = len(data) - len(data) % self._sample_bytes
        self._rest = data[whole:]
        return self._resampler.push(self._convert(data[:whole]))

    def finish(self) -> NDArray[np.float32]:
        """Returns the last samples; an incomplete one is dropped."""
        return self._resampler.finish()


def compute_duration_s(form: InputFormat, num_bytes: int) -> float:
    _, sample_bytes, rate = _FACTS[form]
    return num_bytes / sample_bytes / rate
