"""Measures the cost of the HTTP layer, with a fake engine behind it.

    uv run python benchmarks/api.py [--quick]

The server (event loop, text path and fake engine) runs in one process on one core; the load comes
from another process on another core. The program measures three figures at concurrency 32:

- unary requests/s, of 16 tokens each;
- SSE chunks/s of one token each, while the fake engine steps as fast as its outputs are read;
- added latency: the median time of a request over HTTP, minus the median time of the same requests
  from their submission to the engine to the engine's last token, at a fixed step time and random
  arrivals.

A server that answers from constants shows the limit of the load generator. The last line is JSON.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import socket
import statistics
import time
import urllib.request
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, cast  # ASGI messages and process entry points are untyped

import msgspec
import uvloop

import ouzel.demo
from ouzel import __version__
from ouzel.api.app import create_app
from ouzel.api.http.server.http_server import HttpServer
from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.engine_client.client import GivenTo
from ouzel.generation import ServedModel, system_fingerprint
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import PLAIN
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.render import PromptRenderer
from ouzel.serve.serve import settle_memory
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput

ALL_CORES = range(os.cpu_count() or 1)
SPAWN = multiprocessing.get_context("spawn")

CONCURRENCY = 32
UNARY_TOKENS = 16
STREAM_TOKENS = 1000
STEP_S = 0.01  # step time of the latency measurement
MODEL_DIRECTORY = Path(ouzel.demo.__file__).parent / "model"
MESSAGES = [
    {"role": "user", "content": "Tell me what a long-tailed owl of the northern forests lives on."}
]
ANSWER_TEXT = (
    "It lives on voles and other small animals of the forest, which it hears under the snow. "
)


submitted_s: dict[str, float] = {}  # request id -> time of submission
engine_seconds: list[float] = []  # times from submission to last token


class TimedEngine(FakeEngine):
    def step(self) -> list[StepOutput]:
        outputs = super().step()
        now_s = time.perf_counter()
        for output in outputs:
            if output.finish_reason is not None:
                engine_seconds.append(now_s - submitted_s.pop(output.request_id))
        return outputs


class TimedClient(EngineClient):
    async def submit(
        self,
        request: EngineRequest,
        given_to: GivenTo = None,
        accepted: asyncio.Event | None = None,
    ) -> AsyncGenerator[list[StepOutput], None]:
        submitted_s[request.request_id] = time.perf_counter()
        async with aclosing(super().submit(request, given_to, accepted)) as steps:
            async for step in steps:
                yield step


def create_engine(options: dict[str, object]) -> FakeEngine:
    """Makes the engine. If its steps take time, it records how long each request takes."""
    return _engine(options, TimedEngine if options["step_s"] else FakeEngine)


def create_untimed_engine(options: dict[str, object]) -> FakeEngine:
    return _engine(options, FakeEngine)


def _engine(options: dict[str, object], engine_type: type[FakeEngine]) -> FakeEngine:
    """Makes an engine that says the same sentence again and again."""
    token_ids = load_tokenizer(MODEL_DIRECTORY).encode(ANSWER_TEXT, add_special_tokens=False)
    fake_options = msgspec.convert(options, FakeOptions)
    return engine_type(fake_options, lambda _, position: token_ids[position % len(token_ids)])


# The servers


def pin_to_core(position: int) -> None:
    """Pins this process to the last core (the server) or the core before it (the load).

    With one core both share it.
    """
    cores = sorted(ALL_CORES)
    os.sched_setaffinity(0, {cores[position % len(cores)]})


def serve(listener: socket.socket, step_s: float) -> None:
    pin_to_core(-1)
    uvloop.run(_serve(listener, step_s))


async def _serve(listener: socket.socket, step_s: float) -> None:
    spec = EngineSpec(factory=f"{__name__}:create_engine", options={"step_s": step_s})
    engine = (TimedClient if step_s else EngineClient)(spec, in_thread=True)
    model = served_model(engine, await engine.start())
    app = create_app(model, LimitsConfig(), ServerConfig())
    settle_memory()  # same setting as in `ouzel serve`

    async def app_that_tells(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/engine-seconds":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(engine_seconds).encode()})
            engine_seconds.clear()
        else:
            await app(scope, receive, send)

    await run_uvicorn(app_that_tells if step_s else app, listener)
    await engine.close()


def served_model(engine: EngineClient, info: EngineInfo) -> ServedModel:
    tokenizer = load_tokenizer(MODEL_DIRECTORY)
    return ServedModel(
        names=("fake",),
        tokenizer=tokenizer,
        renderer=PromptRenderer(tokenizer, ChatTemplate.load(MODEL_DIRECTORY), info.max_model_len),
        sampling_defaults=SamplingDefaults(),
        engine=engine,
        output_format=PLAIN,
        vocabulary=GrammarVocabulary({}, tokenizer.vocab_size),
        created=int(time.time()),
        system_fingerprint=system_fingerprint("fake", info, __version__),
    )


def serve_constants(listener: socket.socket) -> None:
    pin_to_core(-1)
    uvloop.run(run_uvicorn(answer_from_constants, listener))


async def answer_from_constants(scope: Any, receive: Any, send: Any) -> None:
    """Answers the same requests from constants.

    This is the least that uvicorn can do for this traffic: the ceiling of both figures, and of the
    load generator.
    """
    if scope["type"] == "lifespan":
        await send({"type": "lifespan.startup.complete"})
        return
    asked = json.loads((await receive())["body"])
    await asyncio.sleep(asked.get("pause_s", 0))
    if not asked["stream"]:
        body = b"x" * 600
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"600")]}
        )
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(asked["max_tokens"]):
        await asyncio.sleep(0)
        await send(
            {
                "type": "http.response.body",
                "body": b"data: " + b"x" * 250 + b"\n\n",
                "more_body": True,
            }
        )
    await send({"type": "http.response.body", "body": b""})


async def run_uvicorn(app: Any, listener: socket.socket) -> None:
    await HttpServer(app, LimitsConfig()).serve([listener])


# The load


class Connection(asyncio.Protocol):
    """A keep-alive connection that reads as much HTTP as uvicorn's answers need."""

    def __init__(self) -> None:
        self.num_chunks = 0
        self._answered: asyncio.Future[None]
        self._received = bytearray()
        self._is_stream = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    async def post(self, body: bytes, *, is_stream: bool) -> None:
        await self.send("POST /v1/chat/completions", body, is_stream=is_stream)

    async def send(self, what: str, body: bytes = b"", *, is_stream: bool = False) -> bytes:
        """Sends a request and returns the body of the answer, unless the answer is a stream.

        `what` is the method and the path.
        """
        self._answered = asyncio.get_running_loop().create_future()
        self._is_stream = is_stream
        self._received.clear()
        head = f"{what} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        await self._answered
        return bytes(self._received.partition(b"\r\n\r\n")[2])

    def data_received(self, data: bytes) -> None:
        if not self._received:
            assert data.startswith(b"HTTP/1.1 200"), data
        if self._is_stream:
            self.num_chunks += data.count(b"data: ")
            self._received[:] = self._received[-5:] + data[-5:]
            is_whole = self._received.endswith(b"0\r\n\r\n")
        else:
            self._received += data
            head, separator, body = self._received.partition(b"\r\n\r\n")
            announced = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            is_whole = bool(separator) and len(body) == int(announced)
        if is_whole:
            self._answered.set_result(None)


def chat_body(*, max_tokens: int, is_stream: bool) -> bytes:
    body = {
        "model": "fake",
        "messages": MESSAGES,
        "max_tokens": max_tokens,
        "stream": is_stream,
        "ignore_eos": True,
    }
    return json.dumps(body).encode()


async def connect(port: int, num_connections: int = CONCURRENCY) -> list[Connection]:
    loop = asyncio.get_running_loop()
    pairs = [
        await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(num_connections)
    ]
    return [connection for _, connection in pairs]


async def unary_requests_per_s(port: int, duration_s: float) -> float:
    body = chat_body(max_tokens=UNARY_TOKENS, is_stream=False)
    connections = await connect(port)
    end_s = time.perf_counter() + duration_s

    async def ask_until_the_end(connection: Connection) -> int:
        num_answers = 0
        while time.perf_counter() < end_s:
            await connection.post(body, is_stream=False)
            num_answers += 1
        return num_answers

    started_s = time.perf_counter()
    num_answers = sum(await asyncio.gather(*map(ask_until_the_end, connections)))
    return num_answers / (time.perf_counter() - started_s)


async def sse_per_s(port: int, duration_s: float) -> tuple[float, float]:
    """Returns chunks and tokens per second.

    There are fewer chunks than tokens if the server does not keep up.
    """
    body = chat_body(max_tokens=STREAM_TOKENS, is_stream=True)
    connections = await connect(port)
    started_s = time.perf_counter()
    num_tokens = 0
    while time.perf_counter() < started_s + duration_s:
        await asyncio.gather(*(connection.post(body, is_stream=True) for connection in connections))
        num_tokens += STREAM_TOKENS * CONCURRENCY
    num_chunks = sum(connection.num_chunks for connection in connections)
    seconds = time.perf_counter() - started_s
    return num_chunks / seconds, num_tokens / seconds


async def request_seconds(port: int, body: bytes, duration_s: float) -> list[float]:
    """Returns the times of requests with random pauses between them.

    The pauses make requests arrive at any moment within a step.
    """
    connections = await connect(port)
    end_s = time.perf_counter() + duration_s
    seconds: list[float] = []

    async def ask_until_the_end(connection: Connection) -> None:
        while time.perf_counter() < end_s:
            await asyncio.sleep(random.uniform(0, 2 * STEP_S))
            started_s = time.perf_counter()
            await connection.post(body, is_stream=False)
            seconds.append(time.perf_counter() - started_s)

    await asyncio.gather(*map(ask_until_the_end, connections))
    return seconds


# The measurements


@contextmanager
def server_process(target: Callable[..., None], *arguments: object) -> Iterator[int]:
    """Runs a server in a process of its own, and yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = SPAWN.Process(target=target, args=(listener, *arguments))
        process.start()
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.join()


def measure_throughput(
    target: Callable[..., None], duration_s: float, *arguments: float
) -> dict[str, float]:
    with server_process(target, *arguments) as port:
        uvloop.run(unary_requests_per_s(port, 0.5))  # warm up
        unary = uvloop.run(unary_requests_per_s(port, duration_s))
        chunks, tokens = uvloop.run(sse_per_s(port, duration_s))
    return {
        "unary_requests_per_s": round(unary),
        "sse_chunks_per_s": round(chunks),
        "sse_tokens_per_s": round(tokens),
    }


def measure_added_latency(duration_s: float) -> dict[str, float]:
    body = chat_body(max_tokens=UNARY_TOKENS, is_stream=False)
    with server_process(serve, STEP_S) as port:
        uvloop.run(request_seconds(port, body, 0.5))  # warm up
        read_engine_seconds(port)
        over_http = uvloop.run(request_seconds(port, body, duration_s))
        in_engine = read_engine_seconds(port)
    http_ms, engine_ms = (1000 * statistics.median(seconds) for seconds in (over_http, in_engine))
    return {
        "http_p50_ms": round(http_ms, 2),
        "engine_p50_ms": round(engine_ms, 2),
        "added_p50_ms": round(http_ms - engine_ms, 2),
    }


def measure_added_by_constants(duration_s: float) -> dict[str, float]:
    """Measures the latency that client, kernel and uvicorn add.

    The engine is a pause here, and the answer is a constant.
    """
    pause_s = UNARY_TOKENS * STEP_S
    body = json.dumps({"stream": False, "pause_s": pause_s}).encode()
    with server_process(serve_constants) as port:
        seconds = uvloop.run(request_seconds(port, body, duration_s))
    return {"added_p50_ms": round(1000 * (statistics.median(seconds) - pause_s), 2)}


def read_engine_seconds(port: int) -> list[float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/engine-seconds") as response:
        seconds: list[float] = json.load(response)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the time")
    is_quick: bool = parser.parse_args().quick
    duration_s = 2.0 if is_quick else 10.0
    pin_to_core(-2)
    results = {
        "ouzel": measure_throughput(serve, duration_s, 0.0) | measure_added_latency(2 * duration_s),
        "constants": measure_throughput(serve_constants, duration_s)
        | measure_added_by_constants(duration_s),
    }
    for name, figures in results.items():
        print(name, figures)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
