"""Makes the silence between pieces of speech as long as their marks ask.

The model puts about 0.3 s of near silence before and after each piece. This silence is cut off,
except a little that keeps soft sounds whole, and a pause follows.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.speaking.pieces import Break

PAUSES_S = {Break.CUT: 0.0, Break.CLAUSE: 0.1, Break.SENTENCE: 0.25, Break.LINE: 0.5}
_FRAME_S = 0.005  # the loudness is measured in frames of this length
_SILENCE = 10 ** (-46 / 20)  # share of the loudest frame; softer frames count as silence
_MARGIN_S = 0.04  # kept on each side of the speech
_FADE_S = 0.005  # so that cut edges make no click


def shape_part(
    samples: NDArray[np.float32], sample_rate: int, following: Break | None, speed: float
) -> NDArray[np.float32]:
    """Returns the samples without the silence at their ends, and with the pause of their break.

    `following` is None at the end of the text, after which no pause follows.
    """
    begin, end = _find_speech(samples, sample_rate)
    shaped = samples[begin:end].copy()
    num_faded = min(int(_FADE_S * sample_rate), len(shaped) // 2)
    if num_faded:
        ramp = np.linspace(0, 1, num_faded, dtype=np.float32)
        shaped[:num_faded] *= ramp
        shaped[-num_faded:] *= ramp[::-1]
    pause_s = 0.0 if following is None else PAUSES_S[following] / speed
    return np.concatenate([shaped, np.zeros(round(pause_s * sample_rate), np.float32)])


def _find_speech(samples: NDArray[np.float32], sample_rate: int) -> tuple[int, int]:
    """Returns the range of the samples with speech and a margin; an empty range for silence."""
    size = int(_FRAME_S * sample_rate)
    num_frames = len(samples) // size
    if not num_frames:
        return 0, len(samples)
    frames = samples[: num_frames * size].reshape(num_frames, size)
    loudness = np.sqrt(np.mean(np.square(frames), axis=1))
    loud = np.flatnonzero(loudness > float(loudness.max()) * _SILENCE)
    if not len(loud):
        return 0, 0
    margin = int(_MARGIN_S * sample_rate)
    begin = max(int(loud[0]) * size - margin, 0)
    return begin, min(int(loud[-1] + 1) * size + margin, len(samples))
