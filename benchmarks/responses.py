"""Measures the cost of storing responses, with a fake engine behind the API.

    uv run python -m benchmarks.responses [--quick] [--store-url postgresql://...]

The server runs in one process on one core; the load comes from another process on another core.
Over SQLite in a new file, and over the store at the URL if there is one:

- GET of 1,000 stored responses in random order, one at a time and 32 at once;
- the time that storing adds to the median of a request, unary and streamed to its end: each
  connection sends `store: true` and `store: false` in turns. One at a time the engine answers at
  once; 32 at once it steps every 10 ms, as a model does.

The last line is JSON.
"""

import argparse
import asyncio
import itertools
import json
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence

import uvloop

from benchmarks.api import (
    ANSWER_TEXT,
    CONCURRENCY,
    MESSAGES,
    STEP_S,
    UNARY_TOKENS,
    Connection,
    connect,
    pin_to_core,
    run_uvicorn,
    served_model,
    server_process,
)
from ouzel.api.app import create_app
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.store.sql_store import open_store

NUM_KEPT = 1000
NUM_WARM_UP = 50

Figures = dict[str, float]


def serve(listener: socket.socket, store_url: str, step_s: float) -> None:
    pin_to_core(-1)
    uvloop.run(_serve(listener, store_url, step_s))


async def _serve(listener: socket.socket, store_url: str, step_s: float) -> None:
    spec = EngineSpec(factory="benchmarks.api:create_untimed_engine", options={"step_s": step_s})
    engine = EngineClient(spec, in_thread=True)
    model = served_model(engine, await engine.start())
    store = await open_store(store_url, max_age_s=3600, max_bytes=2**30)
    await run_uvicorn(create_app(model, LimitsConfig(), ServerConfig(), store), listener)
    await engine.close()
    await store.close()


def response_body(*, store: bool, is_stream: bool) -> bytes:
    fields = {
        "max_output_tokens": UNARY_TOKENS,
        "ignore_eos": True,
        "instructions": ANSWER_TEXT * 10,
    }
    return json.dumps(
        {"model": "fake", "input": MESSAGES, "store": store, "stream": is_stream, **fields}
    ).encode()


async def store_responses(connection: Connection) -> list[str]:
    body = response_body(store=True, is_stream=False)
    return [
        json.loads(await connection.send("POST /v1/responses", body))["id"] for _ in range(NUM_KEPT)
    ]


async def seconds_of_gets(
    port: int, ids: Sequence[str], num_gets: int, concurrency: int
) -> list[float]:
    left = iter(random.choices(ids, k=num_gets))
    seconds: list[float] = []

    async def get_until_none_is_left(connection: Connection) -> None:
        for response_id in left:
            started_s = time.perf_counter()
            await connection.send(f"GET /v1/responses/{response_id}")
            seconds.append(time.perf_counter() - started_s)

    await asyncio.gather(*map(get_until_none_is_left, await connect(port, concurrency)))
    return seconds


async def seconds_of_posts(
    port: int, duration_s: float, concurrency: int, *, is_stream: bool
) -> dict[bool, list[float]]:
    """Returns the times of requests, by whether the response was stored."""
    bodies = {store: response_body(store=store, is_stream=is_stream) for store in (False, True)}
    seconds: dict[bool, list[float]] = {False: [], True: []}
    end_s = time.perf_counter() + duration_s

    async def post_until_the_end(connection: Connection) -> None:
        for store in itertools.cycle(random.sample([False, True], k=2)):
            if concurrency > 1:
                await asyncio.sleep(random.uniform(0, 2 * STEP_S))
            started_s = time.perf_counter()
            await connection.send("POST /v1/responses", bodies[store], is_stream=is_stream)
            seconds[store].append(time.perf_counter() - started_s)
            if time.perf_counter() > end_s:
                return

    await asyncio.gather(*map(post_until_the_end, await connect(port, concurrency)))
    return seconds


def measure_gets(store_url: str, num_gets: int) -> dict[str, Figures]:
    async def measure(port: int) -> dict[str, Figures]:
        ids = await store_responses((await connect(port, 1))[0])
        await seconds_of_gets(port, ids, NUM_WARM_UP, 1)
        return {
            f"get_at_{concurrency}": percentiles(
                await seconds_of_gets(port, ids, num_gets, concurrency)
            )
            for concurrency in (1, CONCURRENCY)
        }

    with server_process(serve, store_url, 0.0) as port:
        return uvloop.run(measure(port))


def measure_posts(store_url: str, duration_s: float, concurrency: int) -> dict[str, Figures]:
    async def measure(port: int, *, is_stream: bool) -> Figures:
        await seconds_of_posts(port, 0.5, concurrency, is_stream=is_stream)  # warm up
        return added(await seconds_of_posts(port, duration_s, concurrency, is_stream=is_stream))

    with server_process(serve, store_url, 0.0 if concurrency == 1 else STEP_S) as port:
        return {
            f"{name}_at_{concurrency}": uvloop.run(measure(port, is_stream=is_stream))
            for name, is_stream in (("unary", False), ("stream", True))
        }


def percentiles(seconds: Sequence[float]) -> Figures:
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50_ms": round(1000 * cuts[49], 2), "p99_ms": round(1000 * cuts[98], 2)}


def added(seconds: dict[bool, list[float]]) -> Figures:
    without_ms, kept_ms = (1000 * statistics.median(seconds[store]) for store in (False, True))
    return {
        "without_p50_ms": round(without_ms, 2),
        "kept_p50_ms": round(kept_ms, 2),
        "added_p50_ms": round(kept_ms - without_ms, 2),
        "num_kept": len(seconds[True]),
    }


def measure(store_url: str, *, duration_s: float, num_gets: int) -> dict[str, Figures]:
    figures = measure_gets(store_url, num_gets)
    for concurrency in (1, CONCURRENCY):
        figures |= measure_posts(store_url, duration_s, concurrency)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the time")
    parser.add_argument("--store-url", help="another store to measure, empty")
    options = parser.parse_args()
    duration_s, num_gets = (4.0, 1000) if options.quick else (20.0, 5000)
    pin_to_core(-2)
    with tempfile.TemporaryDirectory() as directory:
        urls = {"sqlite": f"sqlite:///{directory}/responses.sqlite3"}
        if options.store_url:
            urls[options.store_url.partition(":")[0]] = options.store_url
        results = {
            name: measure(url, duration_s=duration_s, num_gets=num_gets)
            for name, url in urls.items()
        }
    for name, figures in results.items():
        print(name, *(f"  {what}: {each}" for what, each in figures.items()), sep="\n")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
