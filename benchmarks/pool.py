"""Measures the time that a pool of engines adds to the time to the first token.

    uv run python -m benchmarks.pool [--rounds 9] [--bursts 20] [--prompt-len 1000]

Fake engines, each in a process of its own, step every 10 ms. So the difference between one engine
and a pool of two is the pool's own work for a request: its keys, the choice of an engine, one more
generator. Bursts of 1, 8 and 32 requests go to one engine and to the pool in turns. The program
prints medians over the rounds, in milliseconds: both times to the first token, and the difference
within a round with its smallest and largest value.
"""

import argparse
import asyncio
import itertools
import os
import random
import statistics
import time

import msgspec
import uvloop

from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.engine_client import EngineClient, EnginePool, Engines, EngineSpec
from ouzel.sampling import SamplingParams
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest

CONCURRENCIES = (1, 8, 32)
STEP_S = 0.01
VOCAB_SIZE = 1000
BLOCK_SIZE = 32

_numbers = itertools.count()


class EngineWithBlocks(FakeEngine):
    """A fake engine whose prompts have keys, as in a real engine."""

    @property
    def info(self) -> EngineInfo:
        return msgspec.structs.replace(super().info, block_size=BLOCK_SIZE, num_blocks=4096)


def create_engine(options: dict[str, object]) -> EngineWithBlocks:
    """Makes the engine in its child process."""
    return EngineWithBlocks(msgspec.convert(options, FakeOptions))


def spec() -> EngineSpec:
    options = {
        "step_s": STEP_S,
        "vocab_size": VOCAB_SIZE,
        "max_model_len": 32768,
        "max_num_seqs": 64,
    }
    return EngineSpec(factory="benchmarks.pool:create_engine", options={**options})


async def ttft_s(engines: Engines, prompt: list[int]) -> float:
    request = EngineRequest(
        request_id=f"request-{next(_numbers)}",
        prompt_token_ids=prompt,
        params=SamplingParams(max_tokens=3, temperature=0.0),
    )
    begun_s = time.perf_counter()
    first_s = 0.0
    async for _ in engines.submit(request):
        first_s = first_s or time.perf_counter() - begun_s
    return first_s


async def burst(
    engines: Engines, concurrency: int, prompt_len: int, rng: random.Random
) -> list[float]:
    prompts = [[rng.randrange(VOCAB_SIZE) for _ in range(prompt_len)] for _ in range(concurrency)]
    await asyncio.sleep(rng.uniform(0, STEP_S))  # anywhere between two steps
    return await asyncio.gather(*(ttft_s(engines, prompt) for prompt in prompts))


async def measure(num_rounds: int, num_bursts: int, prompt_len: int) -> None:
    alone, pool = EngineClient(spec()), EnginePool([EngineClient(spec()), EngineClient(spec())])
    await asyncio.gather(alone.start(), pool.start())
    rng = random.Random(1)
    print("| requests at once | one engine | pool of two | added |\n|---|---|---|---|")
    for concurrency in CONCURRENCIES:
        rounds: list[tuple[float, float]] = []
        for _ in range(num_rounds):
            times: dict[int, list[float]] = {0: [], 1: []}
            for number in range(2 * num_bursts):
                times[number % 2] += await burst(
                    (alone, pool)[number % 2], concurrency, prompt_len, rng
                )
            rounds.append((statistics.median(times[0]), statistics.median(times[1])))
        ones, twos = ([1000 * each[side] for each in rounds] for side in (0, 1))
        added = sorted(two - one for one, two in zip(ones, twos, strict=True))
        print(
            f"| {concurrency} | {statistics.median(ones):.2f} | {statistics.median(twos):.2f} | "
            f"{statistics.median(added):+.2f} ({added[0]:+.2f} to {added[-1]:+.2f}) |"
        )
    await asyncio.gather(alone.close(), pool.close())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bursts", type=int, default=20)
    parser.add_argument("--prompt-len", type=int, default=1000)
    given = parser.parse_args()
    # the engines' processes do not look there by themselves
    os.environ["PYTHONPATH"] = os.getcwd()
    uvloop.run(measure(given.rounds, given.bursts, given.prompt_len))


if __name__ == "__main__":
    main()
