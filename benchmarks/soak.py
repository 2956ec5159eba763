"""Sends mixed requests for half an hour, and checks that nothing is left behind.

    uv run python -m benchmarks.soak [--minutes 30] [--concurrency 12] [--only schema]
        [-- OPTIONS OF ouzel serve]

With `--requests N` the soak ends after N requests, or after the minutes if they are over first.

A fifth of the clients leave before the end. The server runs as a user starts it; soak_requests.py
has the requests, each with random content. After the first sixth of the time the memory of the
server's processes must grow by less than 1 MB per 1,000 requests. At the end nothing may run, wait
or hold a block, and no line of the log may be above INFO.

The last line is JSON; the exit status is 1 if one of these checks fails.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx
import psutil

from benchmarks.server import running_server
from benchmarks.soak_requests import KINDS, REFUSED, Ask, Json

SHARE_THAT_LEAVES = 0.2
SAMPLE_EVERY_S = 5.0
MAX_SLOPE = 1.0  # MB per 1,000 requests
KV_CACHE_GIB = "0.1"  # so small that all of it has been written in the first minutes
GAUGES = ("ouzel_num_requests_running", "ouzel_num_requests_waiting", "ouzel_kv_cache_usage_perc")
ASK_FOR_MODEL = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/responses/input_tokens",
)
LOG_LINE = re.compile(r"^\d{4}-\d\d-\d\d \S+ (DEBUG|INFO) ")


@dataclass
class Soak:
    client: httpx.AsyncClient
    model: str
    ends_at: float
    random: Random
    kinds: list[str]
    max_requests: float
    seen: Counter[str] = field(default_factory=Counter)  # key: kind and status, or "left"
    # number of requests, and MB by process at that time
    samples: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    @property
    def num_requests(self) -> int:
        return self.seen.total()

    @property
    def is_over(self) -> bool:
        return self.num_requests >= self.max_requests or time.monotonic() >= self.ends_at

    async def worker(self) -> None:
        while not self.is_over:
            kind = self.random.choice(self.kinds)
            outcome = await self._outcome(KINDS[kind](self.random))
            self.seen[f"{kind}: {outcome}"] += 1

    async def _outcome(self, ask: Ask) -> str:
        leaves = self.random.random() < SHARE_THAT_LEAVES
        try:
            async with (
                asyncio.timeout(self.random.expovariate(4) if leaves else None),
                self.client.stream(ask.method, ask.path, json=self._body(ask)) as answer,
            ):
                async for _ in answer.aiter_raw():
                    if leaves and self.random.random() < 0.2:
                        return "left"
                return str(answer.status_code)
        except TimeoutError:
            return "left"

    def _body(self, ask: Ask) -> Json | None:
        return (
            {"model": self.model, **ask.body}
            if ask.body and ask.path in ASK_FOR_MODEL
            else ask.body or None
        )

    async def sampler(self, server: psutil.Process) -> None:
        while not self.is_over:
            self.samples.append((self.num_requests, measure_memory(server)))
            await asyncio.sleep(SAMPLE_EVERY_S)


def measure_memory(server: psutil.Process) -> dict[str, float]:
    """Returns MB by process: the front process, the engine, and the sum of all others."""
    memory = {"front": _resident_mb(server), "engine": 0.0, "others": 0.0}
    for child in server.children(recursive=True):
        try:
            is_engine = any("run_child" in part for part in child.cmdline())
            memory["engine" if is_engine else "others"] += _resident_mb(child)
        except psutil.NoSuchProcess:
            continue
    return memory


def _resident_mb(process: psutil.Process) -> float:
    resident: int = process.memory_info().rss
    return resident / 1e6


def slope(samples: list[tuple[int, float]]) -> float:
    """Returns the growth per 1,000 requests by least squares."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return 1000 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        yield client


async def gauges_at_rest(client: httpx.AsyncClient) -> dict[str, float]:
    """Reads the gauges until they are 0, for a minute at most."""
    values: dict[str, float] = {}
    for _ in range(60):
        lines = (await client.get("/metrics")).text.splitlines()
        values = {
            name: float(line.split()[-1])
            for line in lines
            for name in GAUGES
            if line.startswith(name + "{")
        }
        if not any(values.values()):
            break
        await asyncio.sleep(1)
    return values


async def soak(
    url: str, server: psutil.Process, kinds: list[str], arguments: argparse.Namespace
) -> tuple[Soak, dict[str, float]]:
    async with connected(url) as client:
        model = (await client.get("/v1/models")).json()["data"][0]["id"]
        run = Soak(
            client,
            model,
            time.monotonic() + arguments.minutes * 60,
            Random(1),
            kinds,
            arguments.requests,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run.sampler(server))
            for _ in range(arguments.concurrency):
                tasks.create_task(run.worker())
        gauges = await gauges_at_rest(client)
        run.samples.append((run.num_requests, measure_memory(server)))
        return run, gauges


def is_wrong(kind: str, outcome: str) -> bool:
    """Returns whether a request of this kind must not end so; a full server may refuse any."""
    if outcome in ("left", "429"):
        return False
    return not outcome.startswith("4") if kind in REFUSED else outcome != "200"


def report(run: Soak, gauges: dict[str, float], loud: list[str]) -> bool:
    """Prints the figures, and returns whether all checks hold."""
    settled = run.samples[len(run.samples) // 6 :]
    slopes = {name: slope([(at, memory[name]) for at, memory in settled]) for name in settled[0][1]}
    for at, memory in run.samples[:: max(len(run.samples) // 30, 1)]:
        print(
            f"{at:8d} requests  "
            + "  ".join(f"{name} {value:7.1f} MB" for name, value in memory.items())
        )
    for outcome, number in sorted(run.seen.items()):
        print(f"{number:7d} {outcome}")
    for line in loud[:20]:
        print("LOG", line.rstrip()[:300])
    failed = sorted(outcome for outcome in run.seen if is_wrong(*outcome.rsplit(": ", 1)))
    figures = {
        "requests": run.num_requests,
        "left": sum(number for outcome, number in run.seen.items() if outcome.endswith(": left")),
        "mb_per_1000_requests": {name: round(value, 3) for name, value in slopes.items()},
        "memory_mb": {name: round(value, 1) for name, value in run.samples[-1][1].items()},
        "gauges": gauges,
        "wrong_answers": failed,
        "log_lines_above_info": len(loud),
    }
    print(json.dumps(figures))
    return not failed and not loud and not any(gauges.values()) and max(slopes.values()) < MAX_SLOPE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--requests", type=float, default=float("inf"))
    parser.add_argument("--concurrency", type=int, default=12)
    parser.add_argument("--only", default="", help="kinds of requests with this in their names")
    parser.add_argument("options", nargs="*", help="of ouzel serve")
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if arguments.only in kind]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "log"
        options = [
            "--data-dir",
            f"{directory}/data",
            "--kv-cache-gib",
            KV_CACHE_GIB,
            *arguments.options,
        ]
        with path.open("w") as log, running_server(options, log) as (url, server):
            run, gauges = asyncio.run(soak(url, server, kinds, arguments))
        loud = [
            line
            for line in path.read_text().splitlines()
            if line.strip() and not LOG_LINE.match(line)
        ]
    sys.exit(0 if report(run, gauges, loud) else 1)


if __name__ == "__main__":
    main()
