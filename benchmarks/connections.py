"""What idle and trickling connections cost those that stream beside them.

    uv run python -m benchmarks.connections [--connections 10000] [--rounds 5] [--seconds 10] [--max-connections N]

Starts `ouzel serve` with the demo model, and 32 streams of it, in turns: alone, beside as many connections as are asked
for, and beside the same connections to a bare listener, which takes them, reads nothing, and closes them after the same
time. A third of them send nothing, a third trickle a head, a third a body, a byte each every second; what is closed is
opened again a tenth of a second later. The bare listener shows what the load itself and the kernel take of a machine
that all share; the rest is the server's.

Printed are tokens per second of the streams, seconds of CPU per second of the server's process, its engine's and the
load's, and how long connections were open; the last line is JSON.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import select
import socket
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection as Pipe
from urllib.parse import urlsplit

import psutil
import uvloop

from benchmarks.api import Connection, chat_body
from benchmarks.server import running_server

NUM_STREAMS = 32
STREAM_TOKENS = 200
TIMEOUT_S = 10.0  # of heads and bodies
REOPEN_AFTER_S = 0.1
NUM_TURNS = 20  # of a second: those that trickle do so one after the other
SPAWN = multiprocessing.get_context("spawn")
BEGINNINGS = (
    b"",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
)


async def tokens_per_s(port: int, duration_s: float) -> tuple[float, float]:
    """Gives also how long it took until each stream had had its first answer."""
    loop = asyncio.get_running_loop()
    body = chat_body(max_tokens=STREAM_TOKENS, is_stream=True)
    started_s = time.perf_counter()
    num_answers = 0

    async def come_in() -> tuple[asyncio.Transport, Connection]:
        transport, stream = await loop.create_connection(Connection, "127.0.0.1", port)
        await stream.post(chat_body(max_tokens=1, is_stream=True), is_stream=True)
        return transport, stream

    async def ask_until_the_end(stream: Connection) -> None:
        nonlocal num_answers
        while time.perf_counter() < started_s + duration_s:
            await stream.post(body, is_stream=True)
            num_answers += 1

    pairs = await asyncio.gather(*(come_in() for _ in range(NUM_STREAMS)))
    in_s = time.perf_counter() - started_s
    started_s = time.perf_counter()
    await asyncio.gather(*(ask_until_the_end(stream) for _, stream in pairs))
    rate = num_answers * STREAM_TOKENS / (time.perf_counter() - started_s)
    for transport, _ in pairs:
        transport.close()
    return rate, in_s


# The others


class Crowd:
    """Connections that are held open, and opened again."""

    def __init__(self, port: int, num: int) -> None:
        self.ages_s: list[float] = []  # of those that were closed
        self._address = ("127.0.0.1", port)
        self._poll = select.epoll()
        self._opening: dict[
            int, tuple[socket.socket, bytes]
        ] = {}  # by descriptor: what is to be said first
        self._open: dict[int, tuple[socket.socket, bytes, float]] = {}  # by descriptor: since when
        self._to_open = deque((0.0, BEGINNINGS[number % 3]) for number in range(num))

    def hold(self, duration_s: float) -> None:
        start_s = time.monotonic()
        turn = 0
        while (now_s := time.monotonic()) < start_s + duration_s:
            while self._to_open and self._to_open[0][0] <= now_s:
                self._connect(self._to_open.popleft()[1])
            if now_s >= start_s + turn / NUM_TURNS:
                self._trickle(turn % NUM_TURNS)
                turn += 1
            for descriptor, _ in self._poll.poll(0.5 / NUM_TURNS, 1000):
                if descriptor in self._opening:
                    self._begin(descriptor)
                else:
                    self._read(descriptor)

    def _connect(self, beginning: bytes) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.connect(self._address)
        self._opening[connection.fileno()] = (connection, beginning)
        self._poll.register(connection, select.EPOLLOUT)

    def _begin(self, descriptor: int) -> None:
        connection, beginning = self._opening.pop(descriptor)
        self._open[descriptor] = (connection, beginning, time.monotonic())
        try:
            connection.send(beginning)
        except OSError:
            self._close(descriptor)
        else:
            self._poll.modify(descriptor, select.EPOLLIN)

    def _trickle(self, turn: int) -> None:
        for descriptor in [
            descriptor for descriptor in self._open if descriptor % NUM_TURNS == turn
        ]:
            connection, beginning, _ = self._open[descriptor]
            if beginning:
                with suppress(OSError):  # it is read soon
                    connection.send(b"x")

    def _read(self, descriptor: int) -> None:
        try:
            is_open = bool(self._open[descriptor][0].recv(65536))
        except OSError:
            is_open = False
        if not is_open:
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        connection, beginning, opened_s = self._open.pop(descriptor)
        connection.close()
        now_s = time.monotonic()
        self.ages_s.append(now_s - opened_s)
        self._to_open.append((now_s + REOPEN_AFTER_S, beginning))


def hold_in_process(port: int, num: int, duration_s: float, pipe: Pipe) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd = Crowd(port, min(num, hard - 100))
    pipe.send(None)
    crowd.hold(duration_s)
    pipe.send(crowd.ages_s)


@contextmanager
def beside(port: int, num: int, duration_s: float) -> Iterator[tuple[int, list[float]]]:
    """Gives the load's process, and, once it is left, how long the connections were open that were closed."""
    ages_s: list[float] = []
    receiving, sending = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(
        target=hold_in_process, args=(port, num, duration_s, sending), daemon=True
    )
    process.start()
    assert process.pid is not None
    receiving.recv()
    time.sleep(5)  # until they are open
    yield process.pid, ages_s
    ages_s += receiving.recv()
    process.join()


def listen_barely(listener: socket.socket) -> None:
    """Takes every connection and closes it after the time that the server's may take."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    taken: deque[tuple[float, socket.socket]] = deque()
    listener.settimeout(0.1)
    while True:
        with suppress(TimeoutError):
            taken.append((time.monotonic() + TIMEOUT_S, listener.accept()[0]))
        while taken and taken[0][0] <= time.monotonic():
            taken.popleft()[1].close()


@contextmanager
def listening_barely() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        process = SPAWN.Process(target=listen_barely, args=(listener,), daemon=True)
        process.start()
        yield listener.getsockname()[1]
        process.terminate()
        process.join()


# The measurements


class CpuClock:
    """How much CPU processes take."""

    def __init__(self, processes: dict[str, list[psutil.Process]]) -> None:
        self._processes = processes
        self._start_s = time.monotonic()
        self._before = self._read()

    def _read(self) -> dict[str, float]:
        times = {
            name: [each.cpu_times() for each in processes]
            for name, processes in self._processes.items()
        }
        return {name: sum(each.user + each.system for each in own) for name, own in times.items()}

    def per_s(self) -> dict[str, float]:
        seconds = time.monotonic() - self._start_s
        return {
            name: round((used - self._before[name]) / seconds, 2)
            for name, used in self._read().items()
        }


def options_of_server(max_connections: int | None, cache_dir: str) -> list[str]:
    options = [
        "--cache-dir",
        cache_dir,
        "--log-level",
        "error",
        "--no-store",
        "--served-model-name",
        "fake",
    ]
    options += ["--max-num-seqs", str(NUM_STREAMS), "--body-timeout-s", str(TIMEOUT_S)]
    options += ["--header-timeout-s", str(TIMEOUT_S), "--idle-timeout-s", str(TIMEOUT_S)]
    return (
        options
        if max_connections is None
        else [*options, "--max-connections", str(max_connections)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--max-connections", type=int, help="of the server")
    options = parser.parse_args()
    rates: dict[str, list[float]] = {"alone": [], "beside_bare": [], "beside_server": []}
    ages_s: list[float] = []
    hold_s = 5 + max(options.seconds * 1.5, 1.5 * TIMEOUT_S)

    with (
        tempfile.TemporaryDirectory() as cache_dir,
        running_server(options_of_server(options.max_connections, cache_dir)) as (url, server),
        listening_barely() as bare_port,
    ):
        port = urlsplit(url).port
        assert port is not None
        processes = {"server": [server], "engine": server.children()}

        def measure(name: str, load: int | None = None) -> None:
            clock = CpuClock(
                processes | ({"load": [psutil.Process(load)]} if load is not None else {})
            )
            rate, in_s = uvloop.run(tokens_per_s(port, options.seconds))
            rates[name].append(rate)
            print(
                f"{name}: {rate:.0f} tokens/s, let in within {in_s:.2f} s, CPU {clock.per_s()}",
                flush=True,
            )

        uvloop.run(tokens_per_s(port, 2))  # warm up
        for _ in range(options.rounds):
            measure("alone")
            with beside(bare_port, options.connections, hold_s) as (load, _):
                measure("beside_bare", load)
            with beside(port, options.connections, hold_s) as (load, closed_s):
                measure("beside_server", load)
            ages_s += closed_s
    medians = {name: statistics.median(values) for name, values in rates.items()}
    figures = {f"{name}_tokens_per_s": round(median) for name, median in medians.items()} | {
        "ratio": round(medians["beside_server"] / medians["alone"], 3),
        "ratio_of_bare": round(medians["beside_bare"] / medians["alone"], 3),
        "num_closed": len(ages_s),
        "longest_open_s": round(max(ages_s), 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
