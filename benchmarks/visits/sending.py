"""Sends requests to a server and samples its memory."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from statistics import median

import httpx
import psutil

from benchmarks.server import measure_resident_mb
from benchmarks.visits.requests import Outcome, Prompt, Reference, Sample, Visit

SAMPLE_EVERY_S = 0.1
REHEARSALS = 3
PATH = "/v1/chat/completions"
NOT_IN_MEMORY = ("absent", "on_disk", "failed")


class Refused(Exception):
    """An answer that is an error."""


async def stream_text(client: httpx.AsyncClient, prompt: Prompt) -> AsyncGenerator[str, None]:
    """Yields the pieces of an answer. Raises Refused."""
    async with client.stream("POST", PATH, json=prompt.body()) as response:
        if response.status_code != 200:
            raise Refused(f"{response.status_code} {(await response.aread()).decode()[:300]}")
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                event = json.loads(line.removeprefix("data: "))
                if "error" in event:
                    raise Refused(line)
                yield event["choices"][0]["delta"].get("content") or ""
            elif line == "data: [DONE]":
                return
    raise Refused("the stream ended without [DONE]")


async def ask_alone(client: httpx.AsyncClient, prompt: Prompt) -> Reference:
    outcome = await send(client, Visit(prompt, 0.0), time.perf_counter())
    assert outcome.first_s is not None and not outcome.error, outcome.error
    return Reference(outcome.text, outcome.end_s - outcome.first_s)


async def send(client: httpx.AsyncClient, visit: Visit, begun_s: float) -> Outcome:
    """Waits for the time of a visit, sends its request, and reads the answer."""
    await asyncio.sleep(max(begun_s + visit.arrives_s - time.perf_counter(), 0.0))
    sent_s = time.perf_counter() - begun_s
    first_s, pieces, error, has_left = None, [], "", False
    try:
        async with (
            asyncio.timeout(visit.patience_s),
            # a client that leaves closes its connection
            aclosing(stream_text(client, visit.prompt)) as answer,
        ):
            async for piece in answer:
                first_s = first_s or time.perf_counter() - begun_s
                pieces.append(piece)
                if len(pieces) == visit.max_events:
                    has_left = True
                    break
    except TimeoutError:
        has_left = True
    except (Refused, httpx.HTTPError) as reason:
        error = f"{type(reason).__name__}: {reason}"
    end_s = time.perf_counter() - begun_s
    return Outcome(visit, sent_s, first_s, end_s, "".join(pieces), error, has_left)


async def rehearse(
    client: httpx.AsyncClient, prompts: list[Prompt]
) -> tuple[dict[str, float], dict[str, float]]:
    """Loads each model a few times while nothing else runs.

    Returns the seconds of each model's load, with the unload before it, and the seconds to the
    first token when it is loaded. The models take turns, so that each has to be loaded again.
    """
    last = {prompt.model: prompt for prompt in prompts}
    loads: dict[str, list[float]] = {model: [] for model in last}
    loaded: dict[str, list[float]] = {model: [] for model in last}
    for _ in range(REHEARSALS):
        for model, prompt in last.items():
            with_load_s = await _measure_first_token(client, prompt)
            loaded[model].append(await _measure_first_token(client, prompt))
            loads[model].append(max(with_load_s - loaded[model][-1], 0.0))
    return (
        {model: median(times) for model, times in loads.items()},
        {model: median(times) for model, times in loaded.items()},
    )


async def _measure_first_token(client: httpx.AsyncClient, prompt: Prompt) -> float:
    outcome = await send(client, Visit(prompt, 0.0), time.perf_counter())
    assert outcome.first_s is not None, outcome.error
    return outcome.first_s - outcome.sent_s


async def run_visits(
    client: httpx.AsyncClient, process: psutil.Process, visits: list[Visit]
) -> tuple[list[Outcome], list[Sample]]:
    """Returns the outcomes in the order of arrival, and samples of the server's state."""
    samples: list[Sample] = []
    sampler = asyncio.create_task(_sample(client, process, samples))
    begun_s = time.perf_counter()
    outcomes = await asyncio.gather(*(send(client, visit, begun_s) for visit in visits))
    sampler.cancel()
    await asyncio.wait([sampler])
    if not sampler.cancelled():
        sampler.result()  # raises its error
    return sorted(outcomes, key=lambda outcome: outcome.sent_s), samples


async def _sample(
    client: httpx.AsyncClient, process: psutil.Process, samples: list[Sample]
) -> None:
    while True:
        memory_mb = await asyncio.to_thread(measure_resident_mb, process)
        listed = (await client.get("/v1/models")).raise_for_status().json()["data"]
        loaded = tuple(item["id"] for item in listed if item["state"] not in NOT_IN_MEMORY)
        samples.append(Sample(memory_mb, loaded))
        await asyncio.sleep(SAMPLE_EVERY_S)
