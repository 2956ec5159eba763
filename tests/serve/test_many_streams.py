"""Of 64 streams at once, clients leave 20; the other streams have the answers of lone requests.

Afterwards the server's load, memory and cache are as before.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from random import Random
from typing import Any  # request bodies are JSON

import httpx
import psutil
import pytest

from tests.serve.doors import DOORS, pieces
from tests.serve.running import RunningServer, serving

QUESTIONS = (
    "Hello!",
    "Who are you?",
    "What is 12 plus 30?",
    "Repeat after me: the quick brown fox",
    "Count from 1 to 60.",
    "Spell the word window.",
)
SAMPLED: tuple[dict[str, Any], ...] = (
    {"temperature": 0.9, "top_p": 0.9, "top_k": -1},
    {"temperature": 1.0, "top_k": 10, "n": 2},
    {
        "temperature": 0.7,
        "min_p": 0.05,
        "frequency_penalty": 0.5,
        "logprobs": True,
        "top_logprobs": 3,
    },
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server in f32, where rounding does not depend on the batch."""
    exact = ("--precision", "f32", "--kv-cache-dtype", "f32", "--max-num-seqs", "48")
    with serving(*exact, cache_dir=tmp_path_factory.mktemp("cache")) as server:
        yield server


def body(i: int, random: Random) -> dict[str, Any]:
    kind = {"temperature": 0} if i % 2 == 0 else random.choice(SAMPLED)
    return {
        "model": "ouzel-demo",
        "messages": [
            {"role": "user", "content": random.choice(QUESTIONS) + " " * random.randrange(3)}
        ],
        "stream": True,
        "max_tokens": random.randrange(1, 120),
        "seed": i,
        **kind,
    }


async def read_stream(
    client: httpx.AsyncClient, request: dict[str, Any], cut_after: int | None = None
) -> dict[int, str]:
    """Returns the text of each choice; leaves after a number of chunks if given."""
    texts: dict[int, str] = {}
    num_chunks = 0
    async with client.stream("POST", "/chat/completions", json=request) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if not line or line == "data: [DONE]":
                continue
            for choice in json.loads(line.removeprefix("data: "))["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + (
                    choice["delta"].get("content") or ""
                )
            num_chunks += 1
            if num_chunks == cut_after:
                return texts
    return texts


async def metric(client: httpx.AsyncClient, name: str) -> float:
    text = (await client.get("/metrics")).text
    values = [float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name)]
    assert values, f"there is no metric {name}"
    return sum(values)


async def becomes_idle(client: httpx.AsyncClient) -> None:
    while await metric(client, "vllm:num_requests_running") or await metric(
        client, "vllm:num_requests_waiting"
    ):
        await asyncio.sleep(0.01)


@pytest.mark.release("64 sampled streams, and the memory behind them")
async def test_64_streams_20_of_them_cut_off(server: RunningServer) -> None:
    random = Random(11)
    requests = [body(i, random) for i in range(64)]
    cut = {i: random.randrange(1, 6) for i in random.sample(range(64), 20)}
    async with (
        httpx.AsyncClient(
            base_url=server.url, timeout=None, limits=httpx.Limits(max_connections=64)
        ) as client,
        httpx.AsyncClient(base_url=server.root, timeout=None) as watcher,
    ):
        alone = {i: await read_stream(client, requests[i]) for i in range(64) if i not in cut}
        await becomes_idle(watcher)
        memory_before = server.engine_process().memory_info().rss + memory(server)

        for _ in range(2):
            together = await asyncio.gather(
                *(read_stream(client, request, cut.get(i)) for i, request in enumerate(requests))
            )
            for i in range(64):
                if i not in cut:
                    assert together[i] == alone[i], f"request {i}: {requests[i]}"

        await becomes_idle(watcher)
        assert await metric(watcher, "vllm:kv_cache_usage_perc") == 0
        assert (await watcher.get("/health")).status_code == 200
        grown = server.engine_process().memory_info().rss + memory(server) - memory_before
        assert grown < 64 * 2**20, f"{grown / 2**20:.0f} MiB more than before"


async def test_64_streams_of_all_doors_20_of_them_cut_off(server: RunningServer) -> None:
    random = Random(12)
    asked = [
        (DOORS[i % len(DOORS)], QUESTIONS[i // len(DOORS) % len(QUESTIONS)], 20 + i)
        for i in range(64)
    ]
    cut = {i: random.randrange(1, 6) for i in random.sample(range(64), 20)}
    async with (
        httpx.AsyncClient(
            base_url=server.root, timeout=None, limits=httpx.Limits(max_connections=64)
        ) as client,
        httpx.AsyncClient(base_url=server.root, timeout=None) as watcher,
    ):

        async def read(i: int, cut_after: int | None = None) -> str:
            text = ""
            async with aclosing(pieces(client, *asked[i])) as texts:
                num_pieces = 0
                async for piece in texts:
                    text, num_pieces = text + piece, num_pieces + 1
                    if num_pieces == cut_after:
                        break
            return text

        alone = {i: await read(i) for i in range(64) if i not in cut}
        assert {asked[i][0] for i, text in alone.items() if text} == set(DOORS)

        together = await asyncio.gather(*(read(i, cut.get(i)) for i in range(64)))

        assert {i: together[i] for i in alone} == alone
        await becomes_idle(watcher)
        assert await metric(watcher, "vllm:kv_cache_usage_perc") == 0


def memory(server: RunningServer) -> int:
    resident: int = psutil.Process(server.process.pid).memory_info().rss
    return resident


GOOD = b'{"model": "ouzel-demo", "messages": [{"role": "user", "content": "x"}]'


@pytest.mark.release("storms of nonsense")
async def test_a_storm_of_nonsense_leaves_the_server_serving(server: RunningServer) -> None:
    nonsense: list[bytes] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"model": "ouzel-demo", "messages": "hello"}',
        b'{"model": "ouzel-demo", "messages": []}',
        b'{"model": "ouzel-demo", "messages": [{"role": "user"}]}',
        b'{"model": "ouzel-demo", "messages": [{"role": 7, "content": "x"}]}',
        GOOD + b', "temperature": "hot"}',
        GOOD + b', "temperature": 99}',
        GOOD + b', "n": 0}',
        GOOD + b', "n": 1e9}',
        GOOD + b', "max_tokens": -5}',
        GOOD + b', "logit_bias": {"99999999": 1}}',
        GOOD + b', "stop_token_ids": [-1]}',
        b'{"model": "ouzel-demo", "messages": [{"role": "user", "content": "'
        + b"x" * 100_000
        + b'"}]}',
        b'{"model": "ouzel-demo", "messages": [{"role": "user", "content": [{"type": "image_url"}'
        b"]}]}",
        b"[" * 100_000,
    ]
    async with httpx.AsyncClient(base_url=server.url, timeout=None) as client:
        answers = await asyncio.gather(
            *(client.post("/chat/completions", content=each) for each in nonsense * 3)
        )
        for answer, sent in zip(answers, nonsense * 3, strict=True):
            assert answer.status_code == 400, sent[:100]
            assert answer.json()["error"]["message"]
        good = await client.post("/chat/completions", json=body(0, Random(0)))
        assert good.status_code == 200
