"""Streams, responses in the background and short requests, while something happens to a server."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable

import httpx

NUM_STREAMS, NUM_BACKGROUND = 12, 4
NUM_TOKENS = 900  # they take longer than the proxy needs to see that a server drains


async def stream(client: httpx.AsyncClient, begun: asyncio.Semaphore) -> str:
    """Returns its finish reason, or that it broke."""
    body = {
        "messages": [{"role": "user", "content": "Count."}],
        "max_tokens": NUM_TOKENS,
        "ignore_eos": True,
    }
    reason = "broken"
    try:
        async with client.stream(
            "POST", "/v1/chat/completions", json=body | {"stream": True}
        ) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    begun.release()
                    reason = json.loads(line[6:])["choices"][0]["finish_reason"] or reason
    except httpx.TransportError:
        return "broken"
    return reason


async def background(client: httpx.AsyncClient) -> str:
    body = {
        "input": "Count.",
        "background": True,
        "max_output_tokens": NUM_TOKENS,
        "ignore_eos": True,
    }
    return str((await client.post("/v1/responses", json=body)).json()["id"])


async def wait_for_end(client: httpx.AsyncClient, response_id: str) -> str:
    while True:
        status = str((await client.get(f"/v1/responses/{response_id}")).json()["status"])
        if status not in ("queued", "in_progress"):
            return status
        await asyncio.sleep(0.2)


async def short_requests(client: httpx.AsyncClient, ended: asyncio.Event) -> Counter[int]:
    statuses = Counter[int]()
    while not ended.is_set():
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
        statuses[(await client.post("/v1/chat/completions", json=body)).status_code] += 1
    return statuses


async def under_load(
    client: httpx.AsyncClient, act: Callable[[], object]
) -> tuple[Counter[str], Counter[str]]:
    """Calls `act` when all streams and background responses have begun.

    Returns the numbers of the streams and of the responses, by the way in which they ended.
    """
    begun = asyncio.Semaphore(0)
    streams = [asyncio.create_task(stream(client, begun)) for _ in range(NUM_STREAMS)]
    responses = [await background(client) for _ in range(NUM_BACKGROUND)]
    for _ in range(NUM_STREAMS):
        await begun.acquire()
    act()
    return (
        Counter(await asyncio.gather(*streams)),
        Counter(
            await asyncio.gather(*(wait_for_end(client, response_id) for response_id in responses))
        ),
    )
