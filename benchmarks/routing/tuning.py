"""Varies the weights of the server's policy one by one, on seeds of their own."""

import math
from collections.abc import Iterator
from statistics import fmean

from msgspec.structs import replace

from benchmarks.routing.policies import OURS
from benchmarks.routing.simulation import Experiment, simulate
from ouzel.routing import Weights

_SEEDS = (101, 102, 103)
_WORKLOADS = ("chat", "agents", "documents", "mix", "trace")
_NUM_REQUESTS = {2: 2500, 8: 3000, 64: 7000}  # key: number of replicas


def tune() -> Iterator[str]:
    """Yields the lines of a table: geometric means of the 99th percentiles of the first token's
    time.
    """
    yield (
        "| unfinished, tokens | recent | half-life, s | "
        + " | ".join(f"{num} replicas" for num in _NUM_REQUESTS)
        + " |"
    )
    yield "|---:|---:|---:|" + "---:|" * len(_NUM_REQUESTS)
    for weights in _variations(Weights()):
        means = (f"{_mean_s(weights, *size):.2f}" for size in _NUM_REQUESTS.items())
        values = (
            f"{value:g}"
            for value in (weights.unfinished_tokens, weights.recent, weights.half_life_s)
        )
        yield "| " + " | ".join((*values, *means)) + " |"


def _variations(weights: Weights) -> Iterator[Weights]:
    yield weights
    yield from (replace(weights, unfinished_tokens=value) for value in (0.0, 25.0, 100.0, 300.0))
    yield from (replace(weights, recent=value) for value in (0.0, 0.03, 0.2))
    yield from (replace(weights, half_life_s=value) for value in (30.0, 200.0))


def _mean_s(weights: Weights, num_replicas: int, num_requests: int) -> float:
    times_s = (
        simulate(
            OURS, Experiment(workload, num_replicas, num_requests, 0.2, seed), weights=weights
        ).first_token_p99_s
        for workload in _WORKLOADS
        for seed in _SEEDS
    )
    return math.exp(fmean(map(math.log, times_s)))
