"""When requests are sent: the definitions are those of `vllm bench serve`."""

import itertools
import math
import random


def arrival_times(
    count: int, *, request_rate: float, burstiness: float, rng: random.Random
) -> list[float]:
    """Returns the seconds after the beginning at which requests are due.

    Intervals have a gamma distribution of shape `burstiness` and mean 1 / `request_rate`: with 1 they are exponential,
    as those of a Poisson process, below they come in bursts, above more evenly. They are scaled so that the last one is
    due at `count / request_rate`, and the rate of every run is the one that was asked for. At an infinite rate all are
    due at once.
    """
    if math.isinf(request_rate) or count == 0:
        return [0.0] * count
    times = list(
        itertools.accumulate(rng.gammavariate(burstiness, 1 / burstiness) for _ in range(count))
    )
    scale = count / request_rate / times[-1] if times[-1] > 0 else 0.0
    return [time * scale for time in times]
