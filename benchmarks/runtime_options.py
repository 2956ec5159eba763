"""What the runtime's options gain and cost on this machine: each set alone, on one model, taking turns.

usage: uv run python -m benchmarks.runtime_options MODEL [--weights int4] [--precision auto] [--rounds 7] [--only PART]

Every variant is the model compiled with Ouzel's own properties and a few others; all are in memory at once. Printed are
milliseconds of a step with Ouzel's properties, and for each variant the median over the rounds of how much faster it is
in the same round (above 1: faster). The last line is JSON. What came of it: NOTES.md.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from ouzel.backends.openvino import load, make_runner, read_config
from ouzel.backends.openvino.library import ov
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch, ModelRunner
from ouzel.engine.scheduling.batch import batch_of, prefix_sums

BASE = "as it is"
VARIANTS: dict[str, dict[str, object]] = {
    BASE: {},
    "as it is, again": {},
    "one thread": {"INFERENCE_NUM_THREADS": 1},
    "threads not pinned": {"ENABLE_CPU_PINNING": False},
    "threads pinned": {"ENABLE_CPU_PINNING": True},
    "activations not in int8": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
    "activations in groups of 32": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32},
    "activations in groups of 128": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 128},
    "activations in groups of 256": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 256},
    "float32 beside int8": {"INFERENCE_PRECISION_HINT": ov.Type.f32},
    "KV cache in bf16": {"KV_CACHE_PRECISION": ov.Type.bf16},
    "keys in whole rows": {"KEY_CACHE_GROUP_SIZE": 0},
    "values in groups of 32": {"VALUE_CACHE_GROUP_SIZE": 32},
    "keys by channel": {"KEY_CACHE_QUANT_MODE": "BY_CHANNEL", "KEY_CACHE_GROUP_SIZE": 0},
    "denormals are zero": {"CPU_DENORMALS_OPTIMIZATION": True},
}


class CoreWith(ov.Core):  # type: ignore[misc]  # openvino has no types
    """Compiles with some properties more."""

    def __init__(self, properties: dict[str, object]) -> None:
        super().__init__()
        self._properties = properties

    def compile_model(
        self, model: ov.Model, device: str, config: dict[str, object]
    ) -> ov.CompiledModel:
        return super().compile_model(model, device, config | self._properties)


@dataclass(frozen=True)
class Workload:
    name: str
    batch: int  # sequences
    num_past: int
    num_new: int = 1  # tokens of each
    steps: int = 8  # of which the fastest half counts


WORKLOADS = [
    Workload("batch 1", 1, 32, steps=24),
    Workload("batch 1, context 1024", 1, 1024, steps=16),
    Workload("8 rows", 8, 32, steps=16),
    Workload("32 rows", 32, 32),
    Workload("32 rows, context 512", 32, 512),
    Workload("prefill of 512", 1, 0, 512, steps=2),
]


def batch(workload: Workload, block_size: int, random: np.random.Generator) -> ForwardBatch:
    """Makes sequences whose blocks follow one another."""
    num_blocks = -(-(workload.num_past + workload.num_new) // block_size)
    spans = []
    for number in range(workload.batch):
        table = list(range(number * num_blocks, (number + 1) * num_blocks))
        spans.append(
            (table, workload.num_past, random.integers(1000, 50_000, workload.num_new).tolist())
        )
    ends = prefix_sums(np.full(workload.batch, workload.num_new, np.int32))[1:]
    return batch_of(spans, ends.astype(np.int64) - 1, block_size)


def milliseconds(runner: ModelRunner, workload: Workload, random: np.random.Generator) -> float:
    times = []
    for _ in range(workload.steps + 1):  # the first one changes the number of rows
        each = batch(workload, runner.info.block_size, random)
        started = time.perf_counter()
        runner.run(each)
        times.append(1000 * (time.perf_counter() - started))
    return median(sorted(times[1:])[: max(1, workload.steps // 2)])


def runners(arguments: argparse.Namespace) -> dict[str, ModelRunner]:
    model = ModelConfig(model=str(arguments.model), weights=arguments.weights, max_model_len=2048)
    engine = EngineConfig(precision=arguments.precision, kv_cache_gib=2.0, max_num_seqs=32)
    config, found = read_config(arguments.model), dict[str, ModelRunner]()
    for name, properties in VARIANTS.items():
        if name != BASE and arguments.only and not any(part in name for part in arguments.only):
            continue
        try:
            core = CoreWith(properties)
            found[name] = make_runner(
                core, load(core, arguments.model, config, model), config, model, engine
            )
        except RuntimeError as error:
            print(f"{name}: not had ({str(error).splitlines()[-1]})")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure what the runtime's options gain and cost."
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--weights", default="int4")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART", help="variants with this in their name"
    )
    arguments = parser.parse_args()
    found, random = runners(arguments), np.random.default_rng(0)
    times: dict[str, dict[str, list[float]]] = {
        name: {each.name: [] for each in WORKLOADS} for name in found
    }
    for number in range(arguments.rounds + 1):
        for workload in WORKLOADS:
            for name, runner in found.items():
                took = milliseconds(runner, workload, random)
                if number:  # the first round warms up
                    times[name][workload.name].append(took)
    print(
        "| | "
        + " | ".join(each.name for each in WORKLOADS)
        + " |\n|---"
        + "|---:" * len(WORKLOADS)
        + "|"
    )
    print(
        f"| {BASE}, ms | "
        + " | ".join(f"{median(times[BASE][each.name]):.1f}" for each in WORKLOADS)
        + " |"
    )
    ratios = {
        name: {
            each.name: median(
                b / a for a, b in zip(times[name][each.name], times[BASE][each.name], strict=True)
            )
            for each in WORKLOADS
        }
        for name in found
    }
    for name in list(found)[1:]:
        print(f"| {name} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios[name].values()) + " |")
    print(json.dumps({"weights": arguments.weights, "milliseconds": times, "ratios": ratios}))


if __name__ == "__main__":
    main()
