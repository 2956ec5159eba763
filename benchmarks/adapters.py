"""Measures the time of a decode step with LoRA adapters, against a step without them.

usage: uv run python -m benchmarks.adapters [--shape qwen3-0.6b] [--weights int8 bf16]
           [--rounds 7] [--threads N] [--batches 8 32] [--rank 16]

A random checkpoint gets random adapters for all matrices of its layers. One engine takes no
adapters (`base`), the other eight. Their steps are timed in turns: with no adapter in use, with one
in the whole batch, and with eight in the batch. The program prints the medians of the rounds'
ratios to base, for wall time and for processor time (a busy machine changes processor time less).
`load` is the time to load an adapter, with the resident memory before, with eight adapters, and
after unloading them.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import numpy as np
import psutil

from benchmarks.make_checkpoint import SHAPES, ModelShape, write_checkpoint
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.core import EngineCore
from ouzel.sampling import SamplingParams
from ouzel.types.engine_messages import AdapterLoaded
from ouzel.types.engine_request import EngineRequest

NUM_ADAPTERS = 8
PROMPT_LEN = 32
NUM_STEPS = 6  # timed in each turn
CASES = {"base": 0, "none in use": 0, "one": 1, "eight": NUM_ADAPTERS}  # adapters in the batch


def write_adapter(directory: Path, shape: ModelShape, rank: int, seed: int) -> Path:
    """Writes an adapter for all matrices of all layers, in bf16."""
    random = np.random.default_rng(seed)
    heads, kv_heads = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
    hidden, inner = shape.hidden_size, shape.intermediate_size
    sizes = {
        "self_attn.q_proj": (hidden, heads),
        "self_attn.k_proj": (hidden, kv_heads),
        "self_attn.v_proj": (hidden, kv_heads),
        "self_attn.o_proj": (heads, hidden),
        "mlp.gate_proj": (hidden, inner),
        "mlp.up_proj": (hidden, inner),
        "mlp.down_proj": (inner, hidden),
    }
    tensors = {
        f"base_model.model.model.layers.{layer}.{name}.lora_{half}.weight": size
        for layer in range(shape.num_layers)
        for name, (columns, rows) in sizes.items()
        for half, size in (("A", (rank, columns)), ("B", (rows, rank)))
    }
    directory.mkdir(parents=True)
    header, end = {}, 0
    for name, size in tensors.items():
        header[name] = {
            "dtype": "BF16",
            "shape": size,
            "data_offsets": [end, end + 2 * size[0] * size[1]],
        }
        end += 2 * size[0] * size[1]
    encoded = json.dumps(header).encode()
    with (directory / "adapter_model.safetensors").open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for rows, columns in tensors.values():
            values = random.normal(0, 0.02, rows * columns).astype(np.float32)
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    config = {
        "peft_type": "LORA",
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": "all-linear",
    }
    (directory / "adapter_config.json").write_text(json.dumps(config))
    return directory


def create_engine(model: Path, weights: str, cache: Path, threads: int, rank: int) -> EngineCore:
    """Makes an engine that takes adapters if `rank` is not 0."""
    config = ModelConfig(
        model=str(model),
        weights=weights,
        cache_dir=str(cache),
        max_model_len=1024,
        max_loras=NUM_ADAPTERS if rank else 0,
        max_lora_rank=rank or None,
    )
    engine = EngineConfig(kv_cache_gib=0.5, num_threads=threads)
    return EngineCore(create_runner(config, engine), prefix_caching=False)


def settle(engine: EngineCore) -> None:
    while engine.has_unfinished():
        engine.step()
    assert all(not hasattr(event, "message") for event in engine.adapters.take_events())


def load(engine: EngineCore, paths: Iterable[Path]) -> list[float]:
    seconds = []
    for path in paths:
        started = time.perf_counter()
        engine.adapters.load(path.name, str(path))
        while engine.has_unfinished():
            engine.step()
        seconds.append(time.perf_counter() - started)
        assert engine.adapters.take_events() == [AdapterLoaded(path.name)]
    return seconds


def step_seconds(
    engine: EngineCore, batch: int, num_adapters: int, seed: int
) -> tuple[float, float]:
    """Returns the medians of wall time and of processor time of a decode step."""
    random = np.random.default_rng(seed)
    for index in range(batch):
        engine.add(
            EngineRequest(
                request_id=str(index),
                prompt_token_ids=random.integers(300, engine.info.vocab_size, PROMPT_LEN).tolist(),
                params=SamplingParams(max_tokens=10_000, temperature=0.0),
                adapter=f"adapter-{index % num_adapters}" if num_adapters else "",
            )
        )
    num_begun = 0
    while num_begun < batch:
        num_begun += sum(output.timing is not None for output in engine.step())
    times = []
    for _ in range(NUM_STEPS):
        wall, processor = time.perf_counter(), time.process_time()
        engine.step()
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    for index in range(batch):
        engine.abort(str(index))
    settle(engine)
    walls, processors = zip(*times, strict=True)
    return median(walls), median(processors)


def measure(engines: dict[str, EngineCore], batch: int, num_rounds: int) -> None:
    rounds = [
        {case: step_seconds(engines[case], batch, num, number) for case, num in CASES.items()}
        for number in range(num_rounds + 1)
    ][1:]
    base = [median(each["base"][kind] for each in rounds) * 1e3 for kind in range(2)]
    print(f"  batch {batch}: base {base[0]:.1f} ms, processor {base[1]:.1f} ms")
    for case in list(CASES)[1:]:
        ratios = [
            median(each[case][kind] / each["base"][kind] for each in rounds) for kind in range(2)
        ]
        print(f"    {case:12s} {ratios[0]:.2f} of base, processor {ratios[1]:.2f}", flush=True)


def resident_mib() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", default="qwen3-0.6b", choices=SHAPES)
    parser.add_argument("--weights", nargs="+", default=["int8", "bf16"])
    parser.add_argument("--batches", nargs="+", type=int, default=[8, 32])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    with tempfile.TemporaryDirectory() as folder:
        model, cache = Path(folder) / "model", Path(folder) / "cache"
        write_checkpoint(model, shape, seed=0)
        paths = [
            write_adapter(Path(folder) / f"adapter-{index}", shape, args.rank, index)
            for index in range(NUM_ADAPTERS)
        ]
        for weights in args.weights:
            base = create_engine(model, weights, cache, args.threads, 0)
            adapted = create_engine(model, weights, cache, args.threads, args.rank)
            before = resident_mib()
            seconds = load(adapted, paths)
            loaded = resident_mib()
            print(
                f"{args.shape}, weights {weights}, rank {args.rank}; "
                f"an adapter loads in {median(seconds):.2f} s"
            )
            for batch in args.batches:
                measure(
                    {case: base if case == "base" else adapted for case in CASES},
                    batch,
                    args.rounds,
                )
            used = resident_mib()
            for path in paths:
                adapted.adapters.unload(path.name)
            settle(adapted)
            print(
                f"  resident MiB: {before:.0f}, loaded {loaded:.0f}, used {used:.0f}, "
                f"unloaded {resident_mib():.0f}"
            )
            base.close()
            adapted.close()


if __name__ == "__main__":
    main()
