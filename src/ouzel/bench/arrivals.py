"""Draws the times at which requests are sent, by the definitions of `vllm bench serve`."""

import itertools
import math
import random


def arrival_times(
    count: int, *, request_rate: float, burstiness: float, rng: random.Random
) -> list[float]:
    """Returns the seconds after the start at which the requests are due.

    The intervals have a gamma distribution of shape `burstiness` and mean 1 / `request_rate`.
    A shape of 1 gives a Poisson process; a lower shape gives bursts, a higher shape more even
    intervals. The times are scaled so that the last request is due at `count / request_rate`:
    every run then has exactly the given rate. At an infinite rate all requests are due at 0.
    """
    if math.isinf(request_rate) or count == 0:
        return [0.0] * count
    times = list(
        itertools.accumulate(rng.gammavariate(burstiness, 1 / burstiness) for _ in range(count))
    )
    scale = count / request_rate / times[-1] if times[-1] > 0 else 0.0
    return [time * scale for time in times]
