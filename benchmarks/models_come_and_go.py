"""Sends a hundred requests at random over four models of which two are in memory at most.

    uv run python -m benchmarks.models_come_and_go [--requests 100] [--pause-s 0.7]
        [--shapes tiny,tiny,qwen3-0.6b,qwen3-0.6b] [-- OPTIONS OF ouzel serve]

The models are random checkpoints with heads of their own, so that answers depend on the model and
on the prompt. Each one is first served alone, and answers each of its prompts once: the reference.
Then one server has the directory of all four, --max-loaded-models 2 and
--models-memory-gib. After a few loads without other requests, which give the times of loads, the
requests arrive at random times (`--pause-s` apart on average), each for a random model. A fifth of
the clients close their connection while they wait or read.

Checks: every answer is the reference, or begins it if its client left; no request fails; no more
than two models are loaded; the resident memory of all processes, above the memory of the server
without models, never exceeds the limit; at the end nothing runs, waits or holds a block; each
request waits at most twice as long as in a fair server (fair_wait.py), beyond one longest load.
The wait ends with the first token. Both waits include the time of a first token of a loaded model.
The longest load is allowed because the choice of the model that makes room may differ.

Lines of the log above INFO are printed. The exit status is 1 if a check fails.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import IO

import psutil

from benchmarks.make_checkpoint import SHAPES, write_checkpoint
from benchmarks.server import measure_resident_mb, running_server
from benchmarks.soak import LOG_LINE, connected, gauges_at_rest
from benchmarks.visits.checks import report
from benchmarks.visits.requests import Prompt, Reference, Run, Visit, make_prompts
from benchmarks.visits.sending import ask_alone, rehearse, run_visits

MAX_LOADED = 2
SHARE_THAT_LEAVES = 0.2
MEAN_PATIENCE_S = 1.5  # mean time until a client leaves, if it leaves
OPTIONS = ("--deterministic", "--kv-cache-gib", "0.25", "--weights", "int4", "--no-store")


def write_models(directory: Path, shapes: list[str]) -> list[str]:
    """Writes a random checkpoint of each shape, and returns their names."""
    names = [f"model-{seed}-{shape}" for seed, shape in enumerate(shapes)]
    for seed, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        write_checkpoint(directory / name, replace(SHAPES[shape], tied=False), seed)
    return names


async def answer_alone(
    directory: Path, prompts: list[Prompt], options: list[str], log: IO[str]
) -> tuple[dict[Prompt, Reference], dict[str, float]]:
    """Returns the answers of each model served alone, and its memory in MB."""
    references: dict[Prompt, Reference] = {}
    memory_mb = {}
    for name in dict.fromkeys(prompt.model for prompt in prompts):
        alone = [str(directory / name), "--served-model-name", name, *options]
        with running_server(alone, log) as (url, process):
            async with connected(url) as client:
                for prompt in prompts:
                    if prompt.model == name:
                        references[prompt] = await ask_alone(client, prompt)
                memory_mb[name] = measure_resident_mb(process)
    return references, memory_mb


def make_visits(
    prompts: list[Prompt], num_visits: int, pause_s: float, random: Random
) -> list[Visit]:
    visits, arrives_s = [], 0.0
    for _ in range(num_visits):
        arrives_s += random.expovariate(1 / pause_s)
        leaves = random.random() < SHARE_THAT_LEAVES
        patience_s = random.expovariate(1 / MEAN_PATIENCE_S) if leaves else None
        visits.append(Visit(random.choice(prompts), arrives_s, patience_s))
    return visits


async def run(url: str, process: psutil.Process, prompts: list[Prompt], visits: list[Visit]) -> Run:
    idle_mb = measure_resident_mb(process)
    async with connected(url) as client:
        load_s, loaded_first_s = await rehearse(client, prompts)
        outcomes, samples = await run_visits(client, process, visits)
        gauges = await gauges_at_rest(client)
        metrics = (await client.get("/metrics")).text
    model_metrics = [line for line in metrics.splitlines() if line.startswith("ouzel_model_")]
    return Run(idle_mb, load_s, loaded_first_s, outcomes, samples, gauges, model_metrics)


async def measure(arguments: argparse.Namespace, scratch: Path, log: IO[str]) -> bool:
    random = Random(arguments.seed)
    directory = scratch / "models"
    prompts = make_prompts(write_models(directory, arguments.shapes.split(",")), random)
    visits = make_visits(prompts, arguments.requests, arguments.pause_s, random)
    options = ["--cache-dir", f"{scratch}/cache", *OPTIONS, *arguments.options]
    references, memory_mb = await answer_alone(directory, prompts, options, log)
    limit_mb = sum(sorted(memory_mb.values())[-MAX_LOADED:])
    limits = ["--max-loaded-models", str(MAX_LOADED)]
    limits += ["--models-memory-gib", f"{limit_mb * 1e6 / 2**30:.3f}"]
    together = ["--models-dir", str(directory), *limits, *options]
    with running_server(together, log) as (url, process):
        found = await run(url, process, prompts, visits)
    return report(found, references, limit_mb, MAX_LOADED)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--pause-s", type=float, default=0.7)
    parser.add_argument("--shapes", default="tiny,tiny,qwen3-0.6b,qwen3-0.6b")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="of ouzel serve")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, open(f"{scratch}/log", "w+") as log:
        is_good = asyncio.run(measure(arguments, Path(scratch), log))
        log.seek(0)
        for line in log:
            if line.strip() and not LOG_LINE.match(line):
                print("LOG", line.rstrip()[:300])
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
