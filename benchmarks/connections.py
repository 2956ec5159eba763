"""What idle and trickling connections cost those that stream beside them.

    uv run python -m benchmarks.connections [--connections 10000] [--rounds 3] [--seconds 10]

Starts `ouzel serve` with the demo model. 32 streams run alone and beside as many connections as are asked for, in
turns: a third of them send nothing, a third trickle a head, a third a body, a byte each every second. Those come from
processes of their own, each with as many as its file descriptors allow. What the server closes is opened again at once,
so the number stays. Printed are the streams' chunks per second with and without them, the ratio of the medians, and the
longest that a connection was open; the last line is JSON.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe

import uvloop

from benchmarks.api import Connection, chat_body

NUM_STREAMS = 32
STREAM_TOKENS = 200
TIMEOUT_S = 10.0  # of heads and bodies
SPAWN = multiprocessing.get_context("spawn")
BEGINNINGS = (
    b"",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
)


@contextmanager
def serving() -> Iterator[int]:
    """Gives the port of a server."""
    options = [
        "--port",
        "0",
        "--log-level",
        "error",
        "--no-store",
        "--served-model-name",
        "fake",
        "--max-num-seqs",
        str(NUM_STREAMS),
    ]
    options += ["--header-timeout-s", str(TIMEOUT_S), "--idle-timeout-s", str(TIMEOUT_S)]
    with tempfile.TemporaryDirectory() as cache_dir:
        command = [sys.executable, "-m", "ouzel", "serve", "--cache-dir", cache_dir, "--body-timeout-s", str(TIMEOUT_S)]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the server ended"
                found = re.search(r" at http://127\.0\.0\.1:(\d+)", line)
            yield int(found[1])
        finally:
            process.terminate()
            process.wait()


async def chunks_per_s(port: int, duration_s: float) -> float:
    loop = asyncio.get_running_loop()
    body = chat_body(max_tokens=STREAM_TOKENS, is_stream=True)
    pairs = [await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(NUM_STREAMS)]
    streams = [stream for _, stream in pairs]
    started_s = time.perf_counter()

    async def ask_until_the_end(stream: Connection) -> None:
        while time.perf_counter() < started_s + duration_s:
            await stream.post(body, is_stream=True)

    await asyncio.gather(*map(ask_until_the_end, streams))
    rate = sum(stream.num_chunks for stream in streams) / (time.perf_counter() - started_s)
    for transport, _ in pairs:
        transport.close()
    return rate


# The others


async def hold(port: int, beginning: bytes, ages_s: list[float]) -> None:
    """One connection after the other, each until the server closes it."""
    while True:
        with suppress(OSError):
            opened_s = time.perf_counter()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(beginning)
            trickling = asyncio.create_task(trickle(writer)) if beginning else None
            try:
                while await reader.read(65536):
                    pass
            except OSError:
                pass  # reset: closed too
            finally:
                ages_s.append(time.perf_counter() - opened_s)
                if trickling is not None:
                    trickling.cancel()
                writer.close()
        await asyncio.sleep(0.1)


async def trickle(writer: asyncio.StreamWriter) -> None:
    while True:
        await asyncio.sleep(1)
        writer.write(b"x")


async def hold_many(port: int, num: int, duration_s: float) -> list[float]:
    ages_s: list[float] = []
    holding = [asyncio.create_task(hold(port, BEGINNINGS[number % 3], ages_s)) for number in range(num)]
    await asyncio.sleep(duration_s)
    closed_by_server = ages_s.copy()
    for task in holding:
        task.cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    return closed_by_server


def hold_in_process(port: int, num: int, duration_s: float, pipe: Pipe) -> None:
    os.nice(5)  # the load itself is not to be measured
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pipe.send(uvloop.run(hold_many(port, min(num, hard - 100), duration_s)))


@contextmanager
def beside(port: int, num: int, duration_s: float) -> Iterator[list[float]]:
    """Gives, once it is left, how long the connections were open that the server closed."""
    ages_s: list[float] = []
    num_processes = max(num // 5000, 1)
    pipes = []
    for _ in range(num_processes):
        receiving, sending = SPAWN.Pipe(duplex=False)
        arguments = (port, num // num_processes, duration_s, sending)
        SPAWN.Process(target=hold_in_process, args=arguments, daemon=True).start()
        pipes.append(receiving)
    time.sleep(3)  # until they are open
    yield ages_s
    for pipe in pipes:
        ages_s += pipe.recv()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    alone: list[float] = []
    together: list[float] = []
    longest_s = 0.0
    with serving() as port:
        uvloop.run(chunks_per_s(port, 2))  # warm up
        for _ in range(options.rounds):
            alone.append(uvloop.run(chunks_per_s(port, options.seconds)))
            with beside(port, options.connections, max(2 * options.seconds, 2 * TIMEOUT_S)) as ages_s:
                together.append(uvloop.run(chunks_per_s(port, options.seconds)))
            longest_s = max([longest_s, *ages_s])
            print(f"alone {alone[-1]:.0f} chunks/s, beside {options.connections} connections {together[-1]:.0f}")
    figures = {
        "alone_chunks_per_s": round(statistics.median(alone)),
        "beside_chunks_per_s": round(statistics.median(together)),
        "ratio": round(statistics.median(together) / statistics.median(alone), 3),
        "longest_open_s": round(longest_s, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
