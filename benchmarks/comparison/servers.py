"""Asks Ouzel's server and llama-server for many streams of completions at once, from token ids."""

import asyncio
import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.error import URLError

import httpx
import psutil

from benchmarks.comparison.product import NotAvailable, Turn
from benchmarks.comparison.workers import Machine
from benchmarks.comparison.workloads import Requests, prompts
from benchmarks.server import running_server

START_S = 120.0
BATCHES = (1, 8, 32)

Server = Callable[[], AbstractContextManager[str]]  # gives the URL, without a path


def http_rows(output_len: int) -> dict[str, Requests]:
    return {f"HTTP, {batch} at once": Requests(batch, 32, output_len) for batch in BATCHES}


def ask(url: str, workload: Requests, seed: int) -> Turn:
    """Sends all requests at once and reads their streams to the ends.

    Raises RuntimeError if a request gets no answer.
    """
    return asyncio.run(_ask(url, workload, seed))


async def _ask(url: str, workload: Requests, seed: int) -> Turn:
    limits = httpx.Limits(max_connections=workload.batch)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        before = time.perf_counter()
        counts = await asyncio.gather(
            *(_read_stream(client, row, workload) for row in prompts(workload, seed))
        )
        return Turn(time.perf_counter() - before, sum(counts), workload.output_len)


async def _read_stream(client: httpx.AsyncClient, token_ids: list[int], workload: Requests) -> int:
    """Returns the number of tokens, as the server counts them."""
    body = {
        "model": "model",
        "prompt": token_ids,
        "max_tokens": workload.output_len,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    usage: dict[str, int] = {}
    async with client.stream("POST", "/v1/completions", json=body) as response:
        if response.status_code != 200:
            raise RuntimeError(f"{response.status_code}: {(await response.aread()).decode()[:500]}")
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                usage = json.loads(line.removeprefix("data: ")).get("usage") or usage
    if usage.get("completion_tokens") != workload.output_len:
        raise RuntimeError(
            f"an answer must have {workload.output_len} tokens, given the usage {usage}"
        )
    return usage["completion_tokens"]


@contextmanager
def ouzel_server(model: str, weights: str, machine: Machine) -> Iterator[str]:
    flags = [
        "--weights",
        weights,
        "--served-model-name",
        "model",
        "--no-store",
        "--log-level",
        "error",
    ]
    flags += [
        "--cache-dir",
        f"{machine.scratch}/cache",
        "--kv-cache-gib",
        str(machine.kv_cache_gib),
    ]
    flags += ["--num-threads", str(machine.num_threads)]
    with running_server([model, *flags]) as (url, _):
        yield url


@contextmanager
def llama_server(
    binaries: Path | None, model: str, max_len: int, machine: Machine
) -> Iterator[str]:
    """Yields the URL of llama-server with one model, or raises NotAvailable."""
    slots = max(BATCHES)
    options = {"-m": model, "-c": slots * max_len, "-np": slots, "-t": machine.num_threads}
    words = [str(word) for pair in options.items() for word in pair]
    with running_llama_server(binaries, [*words, "-fa", "on", "--alias", "model"]) as (url, _):
        yield url


@contextmanager
def running_llama_server(
    binaries: Path | None, options: Sequence[str]
) -> Iterator[tuple[str, psutil.Process]]:
    """Yields the URL and the process of llama-server on a free port.

    Raises NotAvailable if the program is missing or does not start.
    """
    program = None if binaries is None else binaries / "llama-server"
    if program is None or not program.exists():
        raise NotAvailable(
            "llama-server: not available (--llama-cpp-bin names llama.cpp's directory)"
        )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
    process = subprocess.Popen(
        [str(program), "--port", str(port), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        _await_health(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def _await_health(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        if (status := process.poll()) is not None:
            raise NotAvailable(f"llama-server ended with {status}")
        try:
            with urllib.request.urlopen(f"{url}/health") as answer:
                if answer.status == 200:
                    return
        except URLError:
            pass
        time.sleep(0.2)
    raise NotAvailable(f"llama-server was not ready after {START_S:.0f} s")
