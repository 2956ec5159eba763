"""Changes the duration of speech without its pitch, by WSOLA.

W. Verhelst and M. Roelands, "An overlap-add technique based on waveform similarity (WSOLA) for high
quality time-scale modification of speech", ICASSP 1993. Windows of the input are added at fixed
distances. Each is taken from the place near its due place where it continues the window before it
best.
"""

import numpy as np
from numpy.typing import NDArray

_WINDOW_S = 0.03
_SEARCH_S = 0.0075  # largest distance from the due place
Samples = NDArray[np.float32]


def stretch(samples: Samples, rate: float, sample_rate: int) -> Samples:
    """Returns the samples [T] in T / rate samples: a rate of 2 is twice as fast."""
    half = int(_WINDOW_S * sample_rate) // 2
    search = int(_SEARCH_S * sample_rate)
    num_windows = int(len(samples) / rate) // half
    if rate == 1 or num_windows < 2:
        return samples
    window = np.hanning(2 * half + 1)[: 2 * half].astype(np.float32)
    padded = np.pad(samples, (search, 4 * half + 2 * search))
    output = np.zeros((num_windows + 1) * half, np.float32)
    natural = search  # the place that continues the last window
    for index in range(num_windows):
        due = int(index * half * rate) + search
        place = due if index == 0 else due + _find_shift(padded, due, natural, 2 * half, search)
        output[index * half : (index + 2) * half] += padded[place : place + 2 * half] * window
        natural = place + half
    return output[: round(len(samples) / rate)]


def _find_shift(samples: Samples, due: int, natural: int, size: int, search: int) -> int:
    """Returns the shift in [-search, search] whose window is most like the natural window."""
    target = samples[natural : natural + size]
    region = samples[due - search : due + search + size]
    if len(target) < size or len(region) < size + 2 * search:
        return 0
    products = np.correlate(region, target, "valid")
    squares = np.concatenate([[0.0], np.cumsum(np.square(region, dtype=np.float64))])
    energies = squares[size:] - squares[:-size]
    likeness = products / np.sqrt(np.maximum(energies, 1e-9))
    return int(np.argmax(likeness)) - search
