"""Measures memory and speed by the number of kernels that are kept: OpenVINO's cache and oneDNN's behind it.

usage: uv run python -m benchmarks.kept_kernels MODEL_DIR [OPENVINO:ONEDNN[:MULTIPLE] ...] [--rounds 6] [--steps 60]

With MULTIPLE a prompt is lengthened until the rows of its step are a multiple of that: fewer numbers of rows occur.

Each pair of capacities has a process of its own with one thread; the processes take turns with the same steps. A step
has up to eight sequences that decode one token, and three steps of four also have a prompt of a random length up to 300
tokens. The first half of the rounds warms up. Printed are the memory by round, and the processor time of the later
rounds relative to the first pair, which is the median over the rounds. The last line is JSON.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

PAIRS = ("512:1024", "512:0", "256:0", "128:0", "64:0")
MAX_PROMPT_LEN = 300
KV_CACHE_GIB = 0.3


def anonymous_mib() -> float:
    """Returns this process's own memory without mapped files, after free memory is given back to the system."""
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    sizes = dict(line.split(":", 1) for line in lines)
    return int(sizes["Anonymous"].split()[0]) / 1024


def work(model_dir: Path, weights: str, capacity: int, multiple: int) -> None:
    """Runs the steps that each line of the standard input asks for, and answers with a line of JSON."""
    from benchmarks.runtime_options import CoreWith  # noqa: PLC0415  OpenVINO reads the environment as it is imported
    from ouzel.backends.openvino import load, make_runner, read_config  # noqa: PLC0415
    from ouzel.config import EngineConfig, ModelConfig  # noqa: PLC0415
    from ouzel.engine.scheduling.batch import batch_of, prefix_sums  # noqa: PLC0415

    model = ModelConfig(model=str(model_dir), weights=weights, max_model_len=1024)
    engine = EngineConfig(kv_cache_gib=KV_CACHE_GIB, max_num_seqs=16, num_threads=1)
    core, config = CoreWith({"CPU_RUNTIME_CACHE_CAPACITY": capacity}), read_config(model_dir)
    runner = make_runner(core, load(core, model_dir, config, model), config, model, engine)
    block_size = runner.info.block_size

    def run(lens: list[int], random: np.random.Generator) -> None:
        spans, first_block = [], 0
        for length in lens:
            past_len = int(random.integers(1, 200)) if length == 1 else 0
            num_blocks = -(-(past_len + length) // block_size)
            table = list(range(first_block, first_block + num_blocks))
            spans.append(
                (table, past_len, random.integers(0, runner.info.vocab_size, length).tolist())
            )
            first_block += num_blocks
        last_rows = prefix_sums(np.array(lens, np.int32))[1:].astype(np.int64) - 1
        runner.run(batch_of(spans, last_rows, block_size))

    run([300], np.random.default_rng(0))
    print(json.dumps({"cpu_s": 0.0, "mib": anonymous_mib()}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        random = np.random.default_rng(order["seed"])
        before_s = time.process_time()
        for _ in range(order["steps"]):
            prompt = [int(random.integers(2, MAX_PROMPT_LEN))] if random.random() < 0.75 else []
            decoding = int(random.integers(0 if prompt else 1, 9))
            prompt = [length + -(length + decoding) % multiple for length in prompt]
            run([1] * decoding + prompt, random)
        print(
            json.dumps({"cpu_s": time.process_time() - before_s, "mib": anonymous_mib()}),
            flush=True,
        )


class Worker:
    """Holds one process with one pair of capacities."""

    def __init__(self, pair: str, arguments: argparse.Namespace) -> None:
        capacity, onednn_capacity, multiple = (pair + ":1").split(":")[:3]
        command = [sys.executable, "-m", "benchmarks.kept_kernels", str(arguments.model)]
        command += ["--weights", arguments.weights, "--work", capacity, "--multiple", multiple]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": onednn_capacity},
        )
        self.mib = [self._answer()["mib"]]
        self.cpu_s: list[float] = []

    def run(self, steps: int, seed: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"steps": steps, "seed": seed}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.cpu_s.append(answer["cpu_s"])
        self.mib.append(answer["mib"])

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith('{"cpu_s"'):
                answer: dict[str, float] = json.loads(line)
                return answer
        raise SystemExit(f"the process of a pair of capacities ended with {self._process.wait()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("pairs", nargs="*", default=PAIRS, metavar="OPENVINO:ONEDNN[:MULTIPLE]")
    parser.add_argument("--weights", default="auto")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--multiple", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments.model, arguments.weights, arguments.work, arguments.multiple)
        return
    workers = {pair: Worker(pair, arguments) for pair in arguments.pairs}
    for seed in range(arguments.rounds):
        for worker in list(workers.values())[:: 1 if seed % 2 else -1]:
            worker.run(arguments.steps, seed)
        seconds = {pair: round(worker.cpu_s[-1], 2) for pair, worker in workers.items()}
        print(f"round {seed}: seconds of processor time {seconds}", flush=True)
    warm = arguments.rounds // 2
    base = workers[arguments.pairs[0]].cpu_s
    figures = {}
    for pair, worker in workers.items():
        ratio = median(
            own / first for own, first in zip(worker.cpu_s[warm:], base[warm:], strict=True)
        )
        figures[pair] = {"mib": [round(mib) for mib in worker.mib], "cpu": round(ratio, 3)}
        print(
            f"{pair:10} MiB {figures[pair]['mib']}, {ratio:.3f} of the processor time", flush=True
        )
        worker.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
