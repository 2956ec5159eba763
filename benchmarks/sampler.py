"""What choosing the tokens of one step costs: `uv run python benchmarks/sampler.py`.

32 rows of 151,936 normal logits, every way of choosing with and without the 5 most likely as logprobs, all of them one
after the other in each round, so that whatever else the machine does meets all alike. Times are those of the CPU.
"""

import time
from collections import defaultdict
from statistics import median

import numpy as np

from ouzel.engine.sampler import draw, prepare
from ouzel.engine.sequence import Sequence
from ouzel.sampling import SamplingParams
from ouzel.types import EngineRequest

NUM_ROWS = 32
VOCAB_SIZE = 151_936
NUM_ROUNDS = 21
KINDS: dict[str, dict[str, float | int]] = {
    "greedy": {"temperature": 0.0},
    "top_k 40, top_p 0.95": {"temperature": 0.8, "top_k": 40, "top_p": 0.95},
    "top_k 40, typical_p 0.9": {"temperature": 0.8, "top_k": 40, "typical_p": 0.9},
    "top_p 0.95": {"temperature": 0.8, "top_p": 0.95},
    "typical_p 0.9": {"temperature": 0.8, "typical_p": 0.9},
}


def main() -> None:
    logits = np.random.default_rng(0).normal(scale=2.0, size=(NUM_ROWS, VOCAB_SIZE)).astype(np.float32)
    rows = np.empty_like(logits)
    times_ms: dict[tuple[str, int | None], list[float]] = defaultdict(list)
    for seed in range(NUM_ROUNDS):
        for kind, params in KINDS.items():
            for num_logprobs in (None, 5):
                sequences = [sequence(params, seed * NUM_ROWS + i, num_logprobs) for i in range(NUM_ROWS)]
                np.copyto(rows, logits)
                start = time.thread_time()
                draw([prepare(row, each) for row, each in zip(rows, sequences, strict=True)])
                times_ms[kind, num_logprobs].append((time.thread_time() - start) * 1e3)
    print("| | median | with logprobs 5 | median of the difference |\n|---|---:|---:|---:|")
    for kind in KINDS:
        without, with_logprobs = times_ms[kind, None], times_ms[kind, 5]
        added = median(b - a for a, b in zip(without, with_logprobs, strict=True))
        print(f"| {kind} | {median(without):.1f} ms | {median(with_logprobs):.1f} ms | {added:.1f} ms |")


def sequence(params: dict[str, float | int], seed: int, num_logprobs: int | None) -> Sequence:
    sampling = SamplingParams(max_tokens=8, seed=seed, num_logprobs=num_logprobs, **params)  # type: ignore[arg-type]
    return Sequence(EngineRequest(request_id=str(seed), prompt_token_ids=[1], params=sampling), 0, 0)


if __name__ == "__main__":
    main()
