"""What `ouzel bench` itself can carry: a server that only pours chunks, and the real command on one core.

    uv run python -m benchmarks.bench_client [--rates 10000 20000 30000]

Each chunk is an event of its own in an HTTP chunk of its own, written by itself: one of 64 streams, then the next, at
the given rate of all together. The server has one core, the command another. A rate is carried if as many chunks
arrive in a second as are offered; the share of its core tells how much is left. The last line is JSON.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import uvloop

NUM_STREAMS = 64
NUM_CHUNKS = 1000  # of a stream
SPAWN = multiprocessing.get_context("spawn")
MODELS = b'{"object": "list", "data": [{"id": "constant", "object": "model"}]}'
EVENT = (
    b'data: {"id":"chatcmpl-2f1f0dbb7b1a4cfd8d3b4f6d6c3a","object":"chat.completion.chunk","created":1700000000,'
    b'"model":"constant","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}\n\n'
)
END = (
    b'data: {"id":"chatcmpl-2f1f0dbb7b1a4cfd8d3b4f6d6c3a","object":"chat.completion.chunk","created":1700000000,'
    b'"model":"constant","choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n'
)


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


class Pouring(asyncio.Protocol):
    """Reads requests well enough for this one client."""

    def __init__(self, live: dict["Pouring", int]) -> None:
        self._live = live  # chunks that are still to come, by stream
        self._received = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, mark, body = self._received.partition(b"\r\n\r\n")
        lengths = [
            int(line[15:])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        if not mark or len(body) < sum(lengths):
            return
        self._received = b""
        if head.startswith(b"GET /v1/models"):
            self._answer(b"200 OK", MODELS)
        elif b"/chat/completions" in head.split(b"\r\n")[0]:
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            self._live[self] = json.loads(body)["max_tokens"]
        else:
            self._answer(b"404 Not Found", b"{}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._live.pop(self, None)

    def pour(self) -> None:
        self.transport.write(chunk(EVENT))
        self._live[self] -= 1
        if self._live[self] == 0:
            del self._live[self]
            self.transport.write(chunk(END) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")

    def _answer(self, status: bytes, body: bytes) -> None:
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (
            status,
            len(body),
        )
        self.transport.write(head + body)


def serve(listener: socket.socket, chunks_per_s: float) -> None:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    uvloop.run(_serve(listener, chunks_per_s))


async def _serve(listener: socket.socket, chunks_per_s: float) -> None:
    live: dict[Pouring, int] = {}
    await asyncio.get_running_loop().create_server(lambda: Pouring(live), sock=listener)
    due_s = time.perf_counter()
    while True:
        due_s = max(due_s, time.perf_counter() - 0.1)  # what was idle is not made up for
        for stream in list(live):
            stream.pour()
        due_s += max(len(live), 1) / chunks_per_s
        await asyncio.sleep(max(due_s - time.perf_counter(), 0))


def measure(chunks_per_s: float, directory: Path) -> dict[str, float]:
    """Returns the chunks that arrived in a second, and the command's share of its core meanwhile."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    server = SPAWN.Process(target=serve, args=(listener, chunks_per_s), daemon=True)
    server.start()
    saved = directory / "result.json"
    command = [
        sys.executable,
        "-m",
        "ouzel",
        "bench",
        "--url",
        f"http://127.0.0.1:{listener.getsockname()[1]}",
    ]
    command += [
        "--max-concurrency",
        str(NUM_STREAMS),
        "--num-prompts",
        str(2 * NUM_STREAMS),
        "--warmup",
        "0",
    ]
    command += ["--output-len", str(NUM_CHUNKS), "--save", str(saved)]
    core = min(os.sched_getaffinity(0))
    before = os.times()
    subprocess.run(["taskset", "-c", str(core), *command], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    server.terminate()
    result = json.loads(saved.read_bytes())
    num_chunks = sum(len(itls) + 1 for itls in result["itls"])
    cpu_s = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return {
        "offered_chunks_per_s": chunks_per_s,
        "chunks_per_s": round(num_chunks / result["duration"]),
        "chunks_per_cpu_s": round(
            num_chunks / cpu_s
        ),  # of the whole command: its start and its end, too
        "cpu_s": round(cpu_s, 2),
        "median_itl_ms": round(result["median_itl_ms"], 3),
        "p99_itl_ms": round(result["p99_itl_ms"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rates", type=float, nargs="+", default=[10_000, 20_000, 30_000])
    rates: list[float] = parser.parse_args().rates
    with tempfile.TemporaryDirectory() as directory:
        figures = [measure(rate, Path(directory)) for rate in rates]
    for each in figures:
        print(", ".join(f"{name} {value:,}" for name, value in each.items()))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
