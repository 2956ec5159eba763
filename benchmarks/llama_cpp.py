"""Compares Ouzel's engine with llama.cpp on one GGUF file: the same weights, in turns, in one run.

usage: uv run python -m benchmarks.llama_cpp MODEL.gguf --batched-bench PATH [--rounds 3]
           [--weights W] [--threads N] [--only WORKLOAD ...] [--answers TOKENS]

Ouzel runs in its default precision, and in int8. PATH is `llama-batched-bench`, built on this
machine. Both run each workload one after the other, round after round. llama.cpp starts anew each
time; its own clock counts, which leaves the start out. Ouzel is warm: long prompts come first,
because an expert's weights are packed when the expert has rows for the first time.

The program prints medians of tokens per second and of the ratios of each round, and JSON on the
last line; a ratio above 1 means that Ouzel is faster. With --answers each answer has so many
tokens: for large models and busy machines, on which short turns compare better.
"""

import argparse
import json
import subprocess
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.engine import WORKLOADS, Worker, Workload, rate
from ouzel.model_store.model_directory import locate_model

OURS = ("ours", "ours-int8")
WARM_UP = ("prefill_1024", "prefill_1024", "greedy_32", "greedy_1")
KEYS = ("greedy_1", "greedy_8", "greedy_32", "prefill_1024")


def llama_cpp_rate(binary: Path, model: Path, workload: Workload, num_threads: int) -> float:
    """Returns llama.cpp's tokens per second. Raises CalledProcessError if it fails."""
    num_tokens = workload.batch * (workload.prompt_len + workload.output_len)
    sizes = {
        "-npp": workload.prompt_len,
        "-ntg": workload.output_len,
        "-npl": workload.batch,
        "-c": num_tokens + 64,
    }
    options = [str(word) for pair in sizes.items() for word in pair]
    command = [
        str(binary),
        "-m",
        str(model),
        *options,
        "-t",
        str(num_threads),
        "-tb",
        str(num_threads),
    ]
    done = subprocess.run(
        [*command, "--output-format", "jsonl"], capture_output=True, text=True, check=True
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    facts = json.loads(line)
    return rate(workload, facts["t_pp"] if workload.output_len == 1 else facts["t"])


@dataclass(frozen=True)
class Measured:
    """Medians of the rounds, by engine."""

    rates: dict[str, float]  # tokens a second
    ratios: dict[str, float]  # ratio to llama.cpp in the same round


def measure(
    workers: dict[str, Worker], arguments: argparse.Namespace, workload: Workload
) -> Measured:
    for worker in workers.values():
        worker.run(workload, seed=0)  # a warm-up
    rounds: dict[str, list[float]] = {name: [] for name in (*workers, "llama.cpp")}
    for round_number in range(1, arguments.rounds + 1):
        for name, worker in workers.items():
            rounds[name].append(rate(workload, worker.run(workload, seed=round_number)))
        theirs = llama_cpp_rate(
            arguments.batched_bench, arguments.model, workload, arguments.threads
        )
        rounds["llama.cpp"].append(theirs)
    ratios = {name: np.divide(rounds[name], rounds["llama.cpp"]) for name in workers}
    return Measured(
        rates={name: round(median(each), 1) for name, each in rounds.items()},
        ratios={name: round(float(np.median(each)), 2) for name, each in ratios.items()},
    )


def choose_workload(key: str, num_tokens: int | None) -> Workload:
    workload = WORKLOADS[key]
    return (
        workload
        if num_tokens is None or workload.output_len == 1
        else replace(workload, output_len=num_tokens)
    )


def started(directory: Path, scratch: Path, arguments: argparse.Namespace) -> dict[str, Worker]:
    workers = {name: Worker(name, directory, scratch, weights=arguments.weights) for name in OURS}
    for seed, key in enumerate(WARM_UP):
        for worker in workers.values():
            worker.run(choose_workload(key, arguments.answers), seed=100 + seed)
    return workers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--batched-bench", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", default="auto", help="of ours; auto keeps the file's")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    parser.add_argument("--only", nargs="+", default=KEYS, choices=KEYS)
    parser.add_argument(
        "--answers", type=int, metavar="TOKENS", help="the length of each, instead of 32 or 64"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ouzel-bench-") as scratch:
        directory = locate_model(str(arguments.model), scratch).directory
        workers = started(directory, Path(scratch), arguments)
        figures = {}
        for key in arguments.only:
            figures[key] = measure(workers, arguments, choose_workload(key, arguments.answers))
            print(
                f"{key:14}", figures[key].rates, "tokens/s, ratios", figures[key].ratios, flush=True
            )
        for worker in workers.values():
            worker.close()
    peaks = {name: round(worker.peak_mib) for name, worker in workers.items()}
    print(json.dumps({"peak_mib": peaks, **{key: asdict(each) for key, each in figures.items()}}))


if __name__ == "__main__":
    main()
