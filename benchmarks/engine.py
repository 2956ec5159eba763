"""Compares Ouzel's engine with OpenVINO GenAI's ContinuousBatchingPipeline on the same weights.

usage: uv run --group bench python -m benchmarks.engine [--quick] [--only ROW ...] [--model DIR]

Each engine is in a process of its own. They take turns for each workload: one works while the other
sleeps. The program prints medians and, on the last line, JSON: a value of `ratios` above 1 means
that Ouzel is faster or smaller; `costs` are Ouzel's times with a feature over its times without it.
Without --model the program first makes the random Qwen3-0.6B checkpoint. GenAI gets a stateful IR
with the same int8 constants (stateful_ir.py).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any  # JSON between the processes

import numpy as np

from benchmarks.make_checkpoint import SHAPES, write_checkpoint
from benchmarks.stateful_ir import write_stateful_ir

MAX_NUM_BATCHED_TOKENS = 512
KV_CACHE_GIB = 1
NUM_ROUNDS = 5
NUM_QUICK_ROUNDS = 3


@dataclass(frozen=True)
class Workload:
    """`batch` requests at once, each with a random prompt; the figure is tokens per second."""

    batch: int
    prompt_len: int
    output_len: int
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    num_beams: int = 1  # above 1: the figure counts the tokens of the winner of each request
    num_logprobs: int | None = None  # ours only: GenAI gives the chosen token's alone


SAMPLED = {"temperature": 0.8, "top_k": 40, "top_p": 0.95}
WORKLOADS = {
    "greedy_1": Workload(1, 32, 64),
    "greedy_8": Workload(8, 32, 64),
    "greedy_32": Workload(32, 32, 32),
    "sampled_8": Workload(8, 32, 64, **SAMPLED),  # type: ignore[arg-type]
    "sampled_32": Workload(32, 32, 32, **SAMPLED),  # type: ignore[arg-type]
    "top_p_32": Workload(32, 32, 32, temperature=0.8, top_p=0.95),
    "beam_4x4": Workload(4, 32, 32, num_beams=4),
    "prefill_1024": Workload(1, 1024, 1),
    "prefill_4096": Workload(1, 4096, 1),
}
# The cost of a feature: key -> the workload with it, and the key of the workload without it.
COSTS = {"logprobs_32": (Workload(32, 32, 32, num_logprobs=5), "greedy_32")}


def prompts(workload: Workload, seed: int) -> list[list[int]]:
    tokens = np.random.default_rng(seed).integers(
        300, 30_000, (workload.batch, workload.prompt_len)
    )
    rows: list[list[int]] = tokens.tolist()
    return rows


def rate(workload: Workload, seconds: float) -> float:
    """Returns tokens per second: of the prompt if the workload is a prefill, else of the output."""
    num_tokens = workload.prompt_len if workload.output_len == 1 else workload.output_len
    return workload.batch * num_tokens / seconds


# The two engines; each function loads one and returns the function that runs a workload


def load_ours(
    model: Path, cache_dir: Path, weights: str = "auto", precision: str = "auto"
) -> Callable[[Workload, int], None]:
    from ouzel.sampling import BeamSearchParams, SamplingParams
    from ouzel.serve.engine_factories import openvino_engine
    from ouzel.types.engine_request import EngineRequest

    options: dict[str, object] = {
        "model": {"model": str(model), "cache_dir": str(cache_dir), "weights": weights},
        "engine": {
            "kv_cache_gib": KV_CACHE_GIB,
            "max_num_batched_tokens": MAX_NUM_BATCHED_TOKENS,
            "precision": precision,
        },
    }
    engine = openvino_engine(options)

    def run(workload: Workload, seed: int) -> None:
        for i, token_ids in enumerate(prompts(workload, seed)):
            params = SamplingParams(
                max_tokens=workload.output_len,
                temperature=workload.temperature,
                top_k=workload.top_k,
                top_p=workload.top_p,
                seed=seed,
                is_seed_random=True,
                num_logprobs=workload.num_logprobs,
                beam_search=BeamSearchParams(width=workload.num_beams)
                if workload.num_beams > 1
                else None,
            )
            engine.add(EngineRequest(request_id=str(i), prompt_token_ids=token_ids, params=params))
        num_tokens = 0
        while engine.has_unfinished():
            num_tokens += sum(len(output.token_ids) for output in engine.step())
        assert num_tokens == workload.batch * workload.output_len

    return run


def load_genai(model: Path, cache_dir: Path, weights: str) -> Callable[[Workload, int], None]:
    import openvino_genai as genai

    from ouzel.backends.openvino.library import ov

    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = KV_CACHE_GIB
    scheduler.max_num_batched_tokens = MAX_NUM_BATCHED_TOKENS
    scheduler.enable_prefix_caching = False  # no prompt repeats here
    pipeline = genai.ContinuousBatchingPipeline(str(model), scheduler, "CPU")

    def run(workload: Workload, seed: int) -> None:
        config = genai.GenerationConfig()
        config.max_new_tokens = workload.output_len
        config.eos_token_id, config.stop_token_ids, config.ignore_eos = 0, {0}, True
        config.apply_chat_template = False
        if workload.temperature:
            config.do_sample, config.temperature, config.rng_seed = True, workload.temperature, seed
            config.top_p = workload.top_p
            if workload.top_k:
                config.top_k = workload.top_k
        if workload.num_beams > 1:
            config.num_beams = workload.num_beams
        handles = [
            pipeline.add_request(i, ov.Tensor(np.array([token_ids], dtype=np.int64)), config)
            for i, token_ids in enumerate(prompts(workload, seed))
        ]
        num_tokens = 0
        while pipeline.has_non_finished_requests():
            pipeline.step()
            for handle in handles:
                while handle.can_read():
                    num_tokens += sum(
                        len(output.generated_ids) for output in handle.read().values()
                    )
        # the tokens of all beams
        assert num_tokens == workload.batch * workload.num_beams * workload.output_len

    return run


ENGINES: dict[str, Callable[[Path, Path, str], Callable[[Workload, int], None]]] = {
    "ours": load_ours,
    "ours-int8": partial(load_ours, precision="int8"),
    "genai": load_genai,
}


def work(name: str, model: Path, cache_dir: Path, weights: str) -> None:
    """Runs the child process: loads an engine, then runs the workloads of standard input.

    Each line of standard input is JSON.
    """
    before = time.perf_counter()
    run = ENGINES[name](model, cache_dir, weights)
    run(Workload(1, 32, 2), 0)
    reply({"load_s": time.perf_counter() - before, "peak_mib": peak_mib()})
    for line in sys.stdin:
        order = json.loads(line)
        workload = Workload(**order["workload"])
        before = time.perf_counter()
        run(workload, order["seed"])
        reply({"seconds": time.perf_counter() - before, "peak_mib": peak_mib()})


def reply(answer: dict[str, Any]) -> None:
    sys.stdout.write("answer " + json.dumps(answer) + "\n")
    sys.stdout.flush()


def peak_mib() -> float:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1024


class Worker:
    """An engine in a process of its own."""

    def __init__(self, name: str, model: Path, cache_dir: Path, *, weights: str = "auto") -> None:
        command = [
            sys.executable,
            "-m",
            "benchmarks.engine",
            "--worker",
            name,
            "--model",
            str(model),
        ]
        command += ["--cache-dir", str(cache_dir), "--weights", weights]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.loaded = self._answer()
        self.peak_mib = float(self.loaded["peak_mib"])

    def run(self, workload: Workload, seed: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"workload": asdict(workload), "seed": seed}) + "\n")
        self._process.stdin.flush()
        answer = self._answer()
        self.peak_mib = float(answer["peak_mib"])
        return float(answer["seconds"])

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                answer: dict[str, Any] = json.loads(line.removeprefix("answer "))
                return answer
        raise RuntimeError(f"the engine's process ended with {self._process.wait()}")


def measure_costs(worker: Worker, keys: list[str], num_rounds: int) -> dict[str, float]:
    """Returns the median of the time with a feature over the time without it."""
    costs = {}
    for key in keys:
        with_it, without_it = COSTS[key][0], WORKLOADS[COSTS[key][1]]
        rounds = [
            worker.run(with_it, seed=round_number) / worker.run(without_it, seed=round_number)
            for round_number in range(num_rounds + 1)
        ]
        costs[key] = round(median(rounds[1:]), 3)
        print(f"{key:14}", costs[key], "times the time of", COSTS[key][1], flush=True)
    return costs


def compare(
    models: dict[str, Path], cache_dir: Path, num_rounds: int, only: list[str]
) -> dict[str, Any]:
    first_loads = {}
    for name, model in models.items():
        worker = Worker(name, model, cache_dir)
        first_loads[name] = worker.loaded
        worker.close()
    workers = {name: Worker(name, model, cache_dir) for name, model in models.items()}
    figures: dict[str, dict[str, float]] = {name: {} for name in workers}
    workloads = {key: workload for key, workload in WORKLOADS.items() if not only or key in only}
    for key, workload in workloads.items():
        rates: dict[str, list[float]] = {name: [] for name in workers}
        for round_number in range(num_rounds + 1):  # the first is for warming up
            for name in list(workers)[:: 1 if round_number % 2 else -1]:
                seconds = workers[name].run(workload, seed=round_number)
                if round_number:
                    rates[name].append(rate(workload, seconds))
        for name in workers:
            figures[name][key] = round(median(rates[name]), 1)
        print(f"{key:14}", {name: figures[name][key] for name in workers}, "tokens/s", flush=True)
    costs = measure_costs(
        workers["ours"], [key for key in COSTS if not only or key in only], num_rounds
    )
    for name, worker in workers.items():
        figures[name]["peak_mib"] = round(worker.peak_mib)
        figures[name]["peak_first_load_mib"] = round(first_loads[name]["peak_mib"])
        figures[name]["load_first_s"] = round(first_loads[name]["load_s"], 2)
        figures[name]["load_second_s"] = round(worker.loaded["load_s"], 2)
        worker.close()
    ratios = {key: round(figures["ours"][key] / figures["genai"][key], 3) for key in workloads}
    ratios["peak_memory"] = round(figures["genai"]["peak_mib"] / figures["ours"]["peak_mib"], 3)
    return {"ratios": ratios, "costs": costs, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: under four minutes")
    parser.add_argument(
        "--only", nargs="+", default=[], choices=[*WORKLOADS, *COSTS], help="these rows"
    )
    parser.add_argument(
        "--model", type=Path, help="a checkpoint directory (default: make the random 0.6B one)"
    )
    parser.add_argument("--worker", choices=sorted(ENGINES), help=argparse.SUPPRESS)
    parser.add_argument("--cache-dir", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--weights", default="auto", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker, arguments.model, arguments.cache_dir, arguments.weights)
        return
    with tempfile.TemporaryDirectory(prefix="ouzel-bench-") as directory:
        scratch = Path(directory)
        checkpoint = arguments.model or scratch / "checkpoint"
        if arguments.model is None:
            write_checkpoint(checkpoint, SHAPES["qwen3-0.6b"], seed=0)
        write_stateful_ir(checkpoint, scratch / "ir")
        models = {"ours": checkpoint, "genai": scratch / "ir"}
        result = compare(
            models,
            scratch / "cache",
            NUM_QUICK_ROUNDS if arguments.quick else NUM_ROUNDS,
            arguments.only,
        )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
