"""Sends a hundred requests at random over four models of which two are in memory at most.

    uv run python -m benchmarks.models_come_and_go [--requests 100] [--pause-s 1]
        [--shapes tiny,tiny,qwen3-0.6b,qwen3-0.6b] [-- OPTIONS OF ouzel serve]

The models are random checkpoints with heads of their own, so that answers depend on the model and
on the prompt. Each one is first served alone, and answers each of its prompts once: the reference.
Then one server has the directory of all four, --max-loaded-models 2 and
--models-memory-gib. After a few loads without other requests, which give the times of loads, the
requests arrive at random times (`--pause-s` apart on average), each for a random model. A fifth of
the clients close their connection, half of them after a short time, the others after a few tokens.

Checks: every answer is the reference, or begins it if its client left; no request fails; no more
than two models are loaded; the resident memory of all processes, above the memory of the server
without models, never exceeds the limit; at the end nothing runs, waits or holds a block; each
request waits at most twice as long as in a fair server (fair_wait.py), beyond the longest load and
the longest answer together. The wait ends with the first token; both waits include the time of the
first token of a loaded model. Load and answer are allowed because another model may have made room.

Lines of the log above INFO are printed. The exit status is 1 if a check fails.
"""

import argparse
import asyncio
import math
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import IO

import psutil

from benchmarks.make_checkpoint import SHAPES, write_checkpoint
from benchmarks.server import measure_resident_mb, running_server
from benchmarks.soak import LOG_LINE, connected, gauges_at_rest
from benchmarks.visits.checks import report
from benchmarks.visits.model_metrics import read_model_metrics
from benchmarks.visits.requests import Prompt, Reference, Run, Visit, make_prompts
from benchmarks.visits.sending import ask_alone, rehearse, run_visits

MAX_LOADED = 2
SHARE_THAT_LEAVES = 0.2
MEAN_PATIENCE_S = 1.5  # mean time until a client leaves, if it leaves
OPTIONS = (
    *("--deterministic", "--no-store", "--weights", "int4"),
    *("--kv-cache-gib", "0.25", "--max-model-len", "4096"),
)


def write_models(directory: Path, shapes: list[str]) -> list[str]:
    """Writes a random checkpoint of each shape, and returns their names."""
    names = [f"model-{seed}-{shape}" for seed, shape in enumerate(shapes)]
    for seed, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        write_checkpoint(directory / name, replace(SHAPES[shape], tied=False), seed)
    return names


async def answer_alone(
    directory: Path, prompts: list[Prompt], options: list[str], log: IO[str]
) -> dict[Prompt, Reference]:
    """Returns the answers of each model served alone."""
    references: dict[Prompt, Reference] = {}
    for name in dict.fromkeys(prompt.model for prompt in prompts):
        alone = [str(directory / name), "--served-model-name", name, *options]
        with running_server(alone, log) as (url, _):
            async with connected(url) as client:
                for prompt in prompts:
                    if prompt.model == name:
                        references[prompt] = await ask_alone(client, prompt)
    return references


async def measure_largest(options: list[str], prompts: list[Prompt], log: IO[str]) -> float:
    """Returns the GiB of the two largest models, as the server measures them at their loads."""
    with running_server([*options, "--max-loaded-models", "1"], log) as (url, _):
        async with connected(url) as client:
            for prompt in {each.model: each for each in prompts}.values():
                await ask_alone(client, prompt)
            listed = (await client.get("/v1/models")).raise_for_status().json()["data"]
    sizes: list[int] = sorted(item["memory_bytes"] for item in listed)
    return sum(sizes[-MAX_LOADED:]) / 2**30


def make_visits(
    prompts: list[Prompt], num_visits: int, pause_s: float, random: Random
) -> list[Visit]:
    visits, arrives_s = [], 0.0
    for _ in range(num_visits):
        arrives_s += random.expovariate(1 / pause_s)
        visits.append(make_visit(random.choice(prompts), arrives_s, random))
    return visits


def make_visit(prompt: Prompt, arrives_s: float, random: Random) -> Visit:
    if random.random() >= SHARE_THAT_LEAVES:
        return Visit(prompt, arrives_s)
    if random.random() < 0.5:
        return Visit(prompt, arrives_s, patience_s=random.expovariate(1 / MEAN_PATIENCE_S))
    return Visit(prompt, arrives_s, max_events=random.randrange(1, prompt.max_tokens))


async def run(url: str, process: psutil.Process, prompts: list[Prompt], visits: list[Visit]) -> Run:
    idle_mb = measure_resident_mb(process)
    async with connected(url) as client:
        load_s, loaded_first_s = await rehearse(client, prompts)
        outcomes, samples = await run_visits(client, process, visits)
        gauges = await gauges_at_rest(client)
        metrics = (await client.get("/metrics")).text
    return Run(
        idle_mb, load_s, loaded_first_s, outcomes, samples, gauges, read_model_metrics(metrics)
    )


async def measure(arguments: argparse.Namespace, scratch: Path, log: IO[str]) -> bool:
    random = Random(arguments.seed)
    directory = scratch / "models"
    prompts = make_prompts(write_models(directory, arguments.shapes.split(",")), random)
    visits = make_visits(prompts, arguments.requests, arguments.pause_s, random)
    options = ["--cache-dir", f"{scratch}/cache", *OPTIONS, *arguments.options]
    references = await answer_alone(directory, prompts, options, log)
    options = ["--models-dir", str(directory), *options]
    limit_gib = math.ceil(100 * await measure_largest(options, prompts, log)) / 100
    limits = ["--max-loaded-models", str(MAX_LOADED), "--models-memory-gib", str(limit_gib)]
    with running_server([*options, *limits], log) as (url, process):
        found = await run(url, process, prompts, visits)
    return report(found, references, limit_gib * 2**30 / 1e6, MAX_LOADED)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--pause-s", type=float, default=1.0)
    parser.add_argument("--shapes", default="tiny,tiny,qwen3-0.6b,qwen3-0.6b")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="of ouzel serve")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, open(f"{scratch}/log", "w+") as log:
        is_good = asyncio.run(measure(arguments, Path(scratch), log))
        log.seek(0)
        loud = Counter(line.split(" ", 2)[-1] for line in log if not LOG_LINE.match(line))
        for text, number in loud.items():
            print(f"LOG, {number} times: {text.rstrip()[:300]}")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
