"""Compares two replicas with one engine by the share of growing prompts found in prefix caches.

    uv run python -m benchmarks.pool_sessions [--sessions 24] [--turns 6] [--think-s 1.0]
        [--rounds 3] [MODEL ...]

Servers with one engine and with `--replicas 2` start in turns. The same number of sessions asks
each server; every turn repeats the conversation and adds to it, after a pause of random length. A
third of the sessions begin alike. The program prints, for each server, the share of the prompts'
tokens that the prefix cache held, and the share of tokens that the busier engine got.
"""

import argparse
import asyncio
import random
import re
import statistics
import tempfile
from typing import Any

import httpx
import uvloop

from benchmarks.server import running_server

WORDS = (
    "red",
    "green",
    "blue",
    "one",
    "two",
    "three",
    "apple",
    "pear",
    "stone",
    "river",
    "cloud",
    "house",
    "glass",
)


def text(rng: random.Random, num_words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(num_words))


async def converse(
    http: httpx.AsyncClient, number: int, *, num_turns: int, think_s: float
) -> list[tuple[int, int]]:
    """Returns, for each turn, the tokens of its prompt and the tokens found in a cache."""
    own, shared = random.Random(number), random.Random(number % 3)
    messages: list[dict[str, Any]] = [{"role": "system", "content": text(shared, 150)}]
    found = []
    for _ in range(num_turns):
        await asyncio.sleep(own.uniform(0, 2 * think_s))
        messages.append({"role": "user", "content": text(own, 60)})
        body = {"messages": messages, "max_tokens": 24, "temperature": 0.0}
        answer = (await http.post("/v1/chat/completions", json=body)).json()
        usage = answer["usage"]
        found.append((usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]))
        messages.append(
            {"role": "assistant", "content": answer["choices"][0]["message"]["content"] or "-"}
        )
    return found


async def ask(url: str, num_sessions: int, num_turns: int, think_s: float) -> tuple[float, float]:
    """Returns the share of tokens found, and the busier engine's share of the load."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as http:
        sessions = [
            converse(http, number, num_turns=num_turns, think_s=think_s)
            for number in range(num_sessions)
        ]
        turns = [turn for found in await asyncio.gather(*sessions) for turn in found]
        metrics = (await http.get("/metrics")).text
    loads = [
        float(value)
        for value in re.findall(r"^ouzel_prefix_cache_queries_total\{.*\} (\S+)$", metrics, re.M)
    ]
    return sum(hit for _, hit in turns) / sum(size for size, _ in turns), max(loads) / sum(loads)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=24)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--think-s", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    given, options = parser.parse_known_args()
    results: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as cache_dir:
        for _ in range(given.rounds):
            for replicas, each in results.items():
                command = [
                    *options,
                    "--replicas",
                    str(replicas),
                    "--cache-dir",
                    cache_dir,
                    "--no-store",
                ]
                with running_server([*command, "--log-level", "error"]) as (url, _process):
                    each.append(uvloop.run(ask(url, given.sessions, given.turns, given.think_s)))
    print("| engines | found | of one engine's | busier engine's load |\n|---|---|---|---|")
    of_one = statistics.median(hit for hit, _ in results[1])
    for replicas, each in results.items():
        hits, loads = [hit for hit, _ in each], [load for _, load in each]
        print(
            f"| {replicas} | {statistics.median(hits):.1%} ({min(hits):.1%} to {max(hits):.1%}) | "
            f"{statistics.median(hits) / of_one:.1%} | "
            f"{statistics.median(loads):.1%} (at most {max(loads):.1%}) |"
        )


if __name__ == "__main__":
    main()
