"""Measures the time of a step with each type of the KV cache, in one process and in turns.

    uv run python -m benchmarks.cache_speed MODEL [--precision auto] [--rounds 15]

MODEL is a directory or a GGUF file. Each line has the least wall times of one step in milliseconds
for three caches: f16, which `--kv-cache-dtype auto` takes if the memory holds it; the cache of
`--kv-cache-dtype u8`, whose keys may have scales; and u8 without scales.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np

from ouzel.backends.openvino import create_runner, load, make_runner, read_config
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, ModelConfig, Precision
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.model_store.model_directory import locate_model

BLOCK_SIZE = 32
NUM_BLOCKS = 2200
STEPS = {  # sequences, new tokens of each, tokens of each in the cache
    "1 sequence behind 500": (1, 1, 500),
    "8 sequences behind 500": (8, 1, 500),
    "32 sequences behind 500": (32, 1, 500),
    "1 sequence behind 8,000": (1, 1, 8000),
    "8 sequences behind 4,000": (8, 1, 4000),
    "32 sequences behind 1,500": (32, 1, 1500),
    "a prompt of 512": (1, 512, 0),
    "a prompt of 2,048": (1, 2048, 0),
}


def make_runners(model: ModelConfig, engine: EngineConfig) -> dict[str, ModelRunner]:
    """Makes a runner for each cache. Only create_runner gives scales to the keys."""
    core, directory = ov.Core(), Path(model.model)
    config = read_config(directory)
    u8 = msgspec.structs.replace(engine, kv_cache_dtype="u8")
    language_model = load(core, directory, config, model)
    return {
        "f16": create_runner(
            model, msgspec.structs.replace(engine, kv_cache_dtype="f16"), num_blocks=NUM_BLOCKS
        ),
        "u8": create_runner(model, u8, num_blocks=NUM_BLOCKS),
        "plain u8": make_runner(core, language_model, config, model, u8, num_blocks=NUM_BLOCKS),
    }


def make_batch(num_sequences: int, num_new: int, num_past: int) -> ForwardBatch:
    num_blocks, num_rows = -(-(num_past + num_new) // BLOCK_SIZE), num_sequences * num_new
    return ForwardBatch(
        token_ids=np.random.default_rng(0).integers(100, 1000, num_rows),
        positions=np.tile(np.arange(num_past, num_past + num_new), num_sequences),
        past_lens=np.full(num_sequences, num_past, np.int32),
        subsequence_begins=np.arange(0, num_rows + 1, num_new, dtype=np.int32),
        block_indices=np.arange(num_sequences * num_blocks, dtype=np.int32),
        block_indices_begins=np.arange(
            0, num_sequences * num_blocks + 1, num_blocks, dtype=np.int32
        ),
        max_context_len=num_past + num_new,
        sampled_rows=np.arange(num_new - 1, num_rows, num_new, dtype=np.int64),
    )


def least_ms(
    runners: Mapping[str, ModelRunner], batch: ForwardBatch, num_rounds: int
) -> dict[str, float]:
    """Runs the batch with each runner in turns, and returns the least times.

    A first run prepares the kernels and is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(num_rounds + 1):
        for name, runner in runners.items():
            began = time.perf_counter()
            runner.run(batch)
            times[name].append(1e3 * (time.perf_counter() - began))
    return {name: min(values[1:]) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--precision", choices=get_args(Precision), default="auto")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    model = ModelConfig(model=str(locate_model(arguments.model).directory))
    runners = make_runners(
        model, EngineConfig(precision=arguments.precision, max_num_batched_tokens=2048)
    )
    served = {
        name: f"{runner.info.kv_cache_dtype}, {runner.info.precision}"
        for name, runner in runners.items()
    }
    sys.stdout.write(f"{served}\n")
    for name, sizes in STEPS.items():
        times = least_ms(runners, make_batch(*sizes), arguments.rounds)
        sys.stdout.write(
            f"{name}: {', '.join(f'{cache} {value:.1f}' for cache, value in times.items())}\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
