"""Our engine against llama.cpp on one GGUF file: the same weights, machine and run, taking turns.

usage: uv run python -m benchmarks.llama_cpp MODEL.gguf --batched-bench PATH [--rounds 3] [--weights W] [--threads N]

PATH is `llama-batched-bench`, built on the machine that measures. Each workload is run by one, then by the other, round
after round; llama.cpp starts anew each time, and its own clock, which leaves the start out, counts. Printed are medians
in tokens a second, and on the last line JSON, whose `ratios` above 1 mean that ours is faster.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.engine import WORKLOADS, Worker, Workload, rate
from ouzel.cli.model_directory import locate_model

KEYS = ("greedy_1", "greedy_8", "greedy_32", "prefill_1024")


def llama_cpp_rate(binary: Path, model: Path, workload: Workload, num_threads: int) -> float:
    """Raises CalledProcessError where it fails."""
    num_tokens = workload.batch * (workload.prompt_len + workload.output_len)
    sizes = {"-npp": workload.prompt_len, "-ntg": workload.output_len, "-npl": workload.batch, "-c": num_tokens + 64}
    options = [str(word) for pair in sizes.items() for word in pair]
    command = [str(binary), "-m", str(model), *options, "-t", str(num_threads), "-tb", str(num_threads)]
    done = subprocess.run([*command, "--output-format", "jsonl"], capture_output=True, text=True, check=True)
    [line] = [line for line in done.stdout.splitlines() if line.startswith("{")]
    facts = json.loads(line)
    return rate(workload, facts["t_pp"] if workload.output_len == 1 else facts["t"])


def measure(worker: Worker, arguments: argparse.Namespace, workload: Workload) -> dict[str, float]:
    rates: dict[str, list[float]] = {"ours": [], "llama.cpp": []}
    for round_number in range(arguments.rounds + 1):  # the first is for warming up
        ours = rate(workload, worker.run(workload, seed=round_number))
        if round_number:
            theirs = llama_cpp_rate(arguments.batched_bench, arguments.model, workload, arguments.threads)
            rates["ours"].append(ours)
            rates["llama.cpp"].append(theirs)
    return {name: round(median(each), 1) for name, each in rates.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--batched-bench", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", default="auto", help="of ours; auto keeps the file's")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    parser.add_argument("--only", nargs="+", default=KEYS, choices=KEYS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ouzel-bench-") as scratch:
        directory = locate_model(str(arguments.model), scratch).directory
        worker = Worker("ours", directory, Path(scratch), weights=arguments.weights)
        figures = {key: measure(worker, arguments, WORKLOADS[key]) for key in arguments.only}
        worker.close()
    for key, each in figures.items():
        print(f"{key:14}", each, "tokens/s")
    ratios = {key: round(each["ours"] / each["llama.cpp"], 3) for key, each in figures.items()}
    print(json.dumps({"ratios": ratios, "peak_mib": round(worker.peak_mib), **figures}))


if __name__ == "__main__":
    main()
