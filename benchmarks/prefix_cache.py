"""Measures the cost of the prefix cache per block, and the time that a hit of a long prompt saves.

usage: uv run python -m benchmarks.prefix_cache [--model DIR] [--prompt-len 8192] [--rounds 5]

The first table has the costs of a block manager alone, with few and with many cached blocks:
medians of microseconds of processor time per block of 32 tokens. With --model an engine computes
random prompts of the given length, and computes each again with another end.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.one_prompt import Prompts, request, seconds_to_first_token
from ouzel.engine.cache.block_manager import BlockManager
from ouzel.engine.state.sequence import Sequence

BLOCK_SIZE = 32
NUM_PROMPT_BLOCKS = 250
NUM_ROUNDS = 7
NUMS_CACHED = (2_000, 100_000)


def make_sequence(token_ids: list[int]) -> Sequence:
    return Sequence(request([*token_ids, 1]), 0, 0)


def fill_with_prompts(num_blocks: int, prompts: Prompts) -> tuple[BlockManager, list[list[int]]]:
    """Returns a manager whose blocks are all cached, and the cached prompts."""
    blocks = BlockManager(num_blocks=num_blocks, block_size=BLOCK_SIZE, prefix_caching=True)
    num_tokens = NUM_PROMPT_BLOCKS * BLOCK_SIZE
    cached = [prompts.random(num_tokens) for _ in range(num_blocks // NUM_PROMPT_BLOCKS)]
    for token_ids in cached:
        sequence = make_sequence(token_ids)
        blocks.allocate(sequence, num_tokens)
        blocks.mark_computed(sequence, num_tokens)
        blocks.release(sequence)
    return blocks, cached


def costs(num_blocks: int) -> dict[str, float]:
    """Returns microseconds per block, by kind of work."""
    prompts = Prompts(seed=num_blocks)
    blocks, cached = fill_with_prompts(num_blocks, prompts)
    num_tokens = NUM_PROMPT_BLOCKS * BLOCK_SIZE
    found: dict[str, list[float]] = {}

    def measure(name: str, work: Callable[[], object]) -> None:
        started = time.thread_time()
        work()
        found.setdefault(name, []).append((time.thread_time() - started) / NUM_PROMPT_BLOCKS * 1e6)

    for _ in range(NUM_ROUNDS):
        hit = make_sequence(cached[-1])
        measure("count, keys new", partial(blocks.num_cached_tokens, hit))
        measure("look up and share", partial(blocks.share_prefix, hit))
        measure("release", partial(blocks.release, hit))
        cached.append(prompts.random(num_tokens))
        new = make_sequence(cached[-1])
        measure("evict and allocate", partial(blocks.allocate, new, num_tokens))
        measure("make findable", partial(blocks.mark_computed, new, num_tokens))
        blocks.release(new)
    return {name: median(times) for name, times in found.items()}


def print_hits(model: Path, prompt_len: int, num_rounds: int) -> None:
    from ouzel.serve.engine_factories import openvino_engine  # noqa: PLC0415  it loads OpenVINO

    options = {"model": {"model": str(model)}, "engine": {"kv_cache_gib": 2}}
    engine, prompts = openvino_engine({**options}), Prompts(seed=1)
    seconds_to_first_token(engine, prompts.random(600))
    rows = []
    for _ in range(num_rounds):
        token_ids = prompts.random(prompt_len)
        cold = seconds_to_first_token(engine, token_ids)
        rows.append((cold, seconds_to_first_token(engine, [*token_ids[:-8], *prompts.random(8)])))
    cold, hit = (median(column) for column in zip(*rows, strict=True))
    print(f"{prompt_len} tokens: cold {cold:.2f} s, hit {hit:.3f} s, {100 * hit / cold:.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path)
    parser.add_argument("--prompt-len", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tables = {num: costs(num) for num in NUMS_CACHED}
    print(f"{'microseconds a block':24}" + "".join(f"{num:>12,}" for num in NUMS_CACHED))
    for name in tables[NUMS_CACHED[0]]:
        print(f"{name:24}" + "".join(f"{table[name]:12.2f}" for table in tables.values()))
    if arguments.model:
        print_hits(arguments.model, arguments.prompt_len, arguments.rounds)


if __name__ == "__main__":
    main()
