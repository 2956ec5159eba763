"""Measures a batch of short requests on the demo model: its rate, and what live users feel of it.

    uv run python -m benchmarks.batch [--lines 10000] [--rounds 3] [--seconds 20]

1. Rate: the batch alone through a server over HTTP, from its creation to its output file, against
   the same requests through the engine in one process without a server (the offline engine).
2. Live users: 8 people chat over HTTP; each reads a streamed answer, thinks, and asks again. The
   rounds alternate: without a batch, and beside a batch. The figures are the medians of the times
   to the first token and between tokens.

The last line is JSON.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # JSON

import httpx

from benchmarks.server import running_server

NUM_USERS = 8
THINK_S = 1.5  # average pause between an answer and the next question
ANSWER_TOKENS = 48
LINE_TOKENS = 16
MODEL = "ouzel-demo"


def make_body(number: int, num_tokens: int) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"What is {number} plus {number % 7}?"}],
        "max_completion_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
    }


# The offline engine


def run_offline(num_lines: int) -> None:
    """Runs all requests through the engine in this process, and prints the seconds."""
    from ouzel.serve.engine_factories import openvino_engine

    engine = openvino_engine({"model": {"model": "", "cache_dir": ""}})
    raise SystemExit(str(engine))


@dataclass
class Felt:
    """Times that the users felt, in seconds."""

    first_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)


async def ask(client: httpx.AsyncClient, number: int, felt: Felt) -> None:
    body = {**make_body(number, ANSWER_TOKENS), "stream": True}
    begin_s = last_s = time.perf_counter()
    is_first = True
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            choices = json.loads(line[6:])["choices"]
            if not choices or not choices[0]["delta"].get("content"):
                continue
            now_s = time.perf_counter()
            if is_first:
                felt.first_s.append(now_s - begin_s)
                is_first = False
            else:
                felt.gaps_s.append(now_s - last_s)
            last_s = now_s


async def chat(client: httpx.AsyncClient, seed: int, until_s: float, felt: Felt) -> None:
    own = random.Random(seed)
    await asyncio.sleep(own.uniform(0, THINK_S))
    while time.perf_counter() < until_s:
        await ask(client, own.randrange(10**6), felt)
        await asyncio.sleep(own.uniform(0.5, 1.5) * THINK_S)


async def measure_users(url: str, seconds: float, seed: int) -> Felt:
    felt = Felt()
    async with httpx.AsyncClient(base_url=url, timeout=None) as client:
        until_s = time.perf_counter() + seconds
        await asyncio.gather(
            *(chat(client, 100 * seed + user, until_s, felt) for user in range(NUM_USERS))
        )
    return felt


def create_batch(http: httpx.Client, num_lines: int) -> str:
    lines = [
        {
            "custom_id": f"line-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": make_body(number, LINE_TOKENS),
        }
        for number in range(num_lines)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = http.post(
        "/v1/files", data={"purpose": "batch"}, files={"file": ("input.jsonl", content)}
    ).raise_for_status()
    body = {
        "input_file_id": file.json()["id"],
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
    }
    return str(http.post("/v1/batches", json=body).raise_for_status().json()["id"])
