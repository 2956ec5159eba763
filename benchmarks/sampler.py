"""Measures the processor time of choosing the tokens of one step.

    uv run python benchmarks/sampler.py

There are 1 or 32 rows of 151,936 normal logits. Each way of choosing is measured with random seeds,
with seeds of clients, and with the 5 most likely tokens as logprobs. All ways follow one another in
each round, so that other work on the machine slows all of them alike.
"""

import time
from collections import defaultdict
from itertools import product
from statistics import median

import numpy as np

from ouzel.engine.sampling.sampler import draw, prepare
from ouzel.engine.state.sequence import Sequence
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest

NUMS_ROWS = (1, 32)
VOCAB_SIZE = 151_936
NUM_ROUNDS = 21
KINDS: dict[str, dict[str, float | int]] = {
    "greedy": {"temperature": 0.0},
    "temperature alone": {"temperature": 0.8},
    "top_k 40, top_p 0.95": {"temperature": 0.8, "top_k": 40, "top_p": 0.95},
    "top_k 40, typical_p 0.9": {"temperature": 0.8, "top_k": 40, "typical_p": 0.9},
    "top_p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "typical_p 0.9": {"temperature": 0.8, "typical_p": 0.9},
}


COLUMNS: dict[str, tuple[bool, int | None]] = {  # whether the seed is random, and how many logprobs
    "random seed": (True, None),
    "given seed": (False, None),
    "random seed, logprobs 5": (True, 5),
}


def main() -> None:
    logits = (
        np.random.default_rng(0)
        .normal(scale=2.0, size=(max(NUMS_ROWS), VOCAB_SIZE))
        .astype(np.float32)
    )
    rows = np.empty_like(logits)
    times_ms: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for number, num_rows, kind, column in product(range(NUM_ROUNDS), NUMS_ROWS, KINDS, COLUMNS):
        sequences = [
            sequence(KINDS[kind], number * num_rows + i, *COLUMNS[column]) for i in range(num_rows)
        ]
        np.copyto(rows, logits)
        start = time.thread_time()
        draw([prepare(row, each) for row, each in zip(rows[:num_rows], sequences, strict=True)])
        times_ms[num_rows, kind, column].append((time.thread_time() - start) * 1e3)
    print(f"| rows | | {' | '.join(COLUMNS)} |\n|---:|---{'|---:' * len(COLUMNS)}|")
    for num_rows, kind in product(NUMS_ROWS, KINDS):
        cells = " | ".join(
            f"{median(times_ms[num_rows, kind, column]):.2f} ms" for column in COLUMNS
        )
        print(f"| {num_rows} | {kind} | {cells} |")


def sequence(
    params: dict[str, float | int], seed: int, is_seed_random: bool, num_logprobs: int | None
) -> Sequence:
    sampling = SamplingParams(
        max_tokens=8,
        seed=seed,
        is_seed_random=is_seed_random,
        num_logprobs=num_logprobs,
        **params,  # type: ignore[arg-type]
    )
    return Sequence(
        EngineRequest(request_id=str(seed), prompt_token_ids=[1], params=sampling), 0, 0
    )


if __name__ == "__main__":
    main()
