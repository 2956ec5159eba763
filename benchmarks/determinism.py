"""Counts the requests that have more than one answer, by default and with `--deterministic`.

    uv run python -m benchmarks.determinism MODEL [--requests 100] [--max-tokens 24]
        [--only answers|company|speed] [OPTION ...]

Greedy requests and requests with a seed are sent to an idle server, and in another order with 32 in
flight, where their prompts are cached; then again after a restart, and after another restart
without proposals. `--only company` sends twelve requests of each kind alone and all of them beside
31 others, by default, and compares those twelve. OPTION is an option of `ouzel serve` with its
value, like `--kv-cache-dtype f16`.

The cost is measured by steps in turns. The least processor time counts, which other programs on the
machine disturb less than wall time.
"""

import argparse
import asyncio
import pydoc_data.topics
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import product

import httpx
import msgspec
import numpy as np

from benchmarks.server import running_server
from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.engine.flat_batch import Span, build_flat_batch
from ouzel.model_store.model_directory import locate_model

_NUM_IN_FLIGHT = 32
_NUM_ALONE = 12
_PROMPT_LETTERS = 240
_NUM_PAST, _NUM_PREFILLED, _NUM_ROUNDS = 250, 512, 5

Body = dict[str, object]


def bodies(number: int, max_tokens: int) -> list[Body]:
    """Returns `number` greedy requests, and as many with a seed."""
    text = "\n\n".join(
        pydoc_data.topics.topics[topic] for topic in sorted(pydoc_data.topics.topics)
    )
    stride = len(text) // number
    prompts = [text[place * stride :][:_PROMPT_LETTERS] for place in range(number)]
    greedy: list[Body] = [
        {"prompt": prompt, "temperature": 0, "max_tokens": max_tokens} for prompt in prompts
    ]
    return greedy + [{**body, "temperature": 1, "seed": seed} for seed, body in enumerate(greedy)]


async def answers(url: str, requests: list[Body], *, num_in_flight: int, order: int) -> list[str]:
    """Returns the texts in the order of the requests."""
    texts = [""] * len(requests)
    places = list(range(len(requests)))
    random.Random(order).shuffle(places)
    waiting = iter(places)

    async def ask(client: httpx.AsyncClient) -> None:
        for place in waiting:
            response = await client.post(
                f"{url}/v1/completions", json={"model": "m", **requests[place]}
            )
            texts[place] = response.raise_for_status().json()["choices"][0]["text"]

    async with httpx.AsyncClient(timeout=None) as client:
        await asyncio.gather(*(ask(client) for _ in range(num_in_flight)))
    return texts


def compare_answers(model: str, requests: list[Body], options: list[str]) -> None:
    """Starts three servers, and prints how many requests had more than one answer."""
    found: list[set[str]] = [set() for _ in requests]
    passes = (
        ("--prompt-lookup", ((1, 0), (_NUM_IN_FLIGHT, 1))),
        ("--prompt-lookup", ((_NUM_IN_FLIGHT, 2),)),
        ("--no-prompt-lookup", ((_NUM_IN_FLIGHT, 3), (1, 4))),
    )
    for lookup, own_passes in passes:
        arguments = [
            model,
            "--served-model-name",
            "m",
            "--no-store",
            "--max-model-len",
            "2048",
            lookup,
            *options,
        ]
        with running_server(arguments) as (url, _):
            for num_in_flight, order in own_passes:
                begin = time.perf_counter()
                texts = asyncio.run(
                    answers(url, requests, num_in_flight=num_in_flight, order=order)
                )
                for texts_so_far, text in zip(found, texts, strict=True):
                    texts_so_far.add(text)
                greedy, seeded = (
                    sum(len(each) > 1 for each in half)
                    for half in (found[: len(found) // 2], found[len(found) // 2 :])
                )
                print(
                    f"{' '.join(options) or 'default':<16} {lookup:<20}"
                    f"{num_in_flight:>3} in flight "
                    f"{time.perf_counter() - begin:6.0f} s; "
                    f"several answers so far: greedy {greedy}, seeded {seeded}",
                    flush=True,
                )


def compare_company(model: str, requests: list[Body], options: list[str]) -> None:
    """Starts one server, and prints how many answers differ alone and beside others."""
    half = len(requests) // 2
    places = [
        begin + half * number // _NUM_ALONE for begin in (0, half) for number in range(_NUM_ALONE)
    ]
    arguments = [
        model,
        "--served-model-name",
        "m",
        "--no-store",
        "--max-model-len",
        "2048",
        *options,
    ]
    with running_server(arguments) as (url, _):
        alone = asyncio.run(
            answers(url, [requests[place] for place in places], num_in_flight=1, order=0)
        )
        together = asyncio.run(answers(url, requests, num_in_flight=_NUM_IN_FLIGHT, order=1))
    others = [text != together[place] for text, place in zip(alone, places, strict=True)]
    greedy, seeded = sum(others[:_NUM_ALONE]), sum(others[_NUM_ALONE:])
    print(
        f"another answer alone than beside others, of {_NUM_ALONE} each: "
        f"greedy {greedy}, seeded {seeded}"
    )


def step(runner: ModelRunner, num_sequences: int) -> Callable[[], object]:
    """Returns a decode step of `num_sequences` sequences; 0 means a prefill."""
    size = runner.info.block_size
    num_blocks = -(-(_NUM_PAST + 1) // size)
    spans: list[Span] = [
        (list(range(index * num_blocks, (index + 1) * num_blocks)), _NUM_PAST, [7])
        for index in range(num_sequences)
    ] or [(list(range(_NUM_PREFILLED // size)), 0, list(range(_NUM_PREFILLED)))]
    rows = (
        np.arange(num_sequences, dtype=np.int64)
        if num_sequences
        else np.array([_NUM_PREFILLED - 1])
    )
    batch = build_flat_batch(spans, rows, size)
    return lambda: runner.run(batch)


def compare_speed(model: str, options: Mapping[str, str]) -> None:
    """Compares the speed of steps; `options` has the engine's options by field name."""
    directory = str(locate_model(model).directory)
    runners = [
        create_runner(
            ModelConfig(model=directory),
            msgspec.convert({"deterministic": each, **options}, EngineConfig),
            num_blocks=300,
        )
        for each in (False, True)
    ]
    counts = (1, 8, 32, 0)
    fastest: dict[tuple[int, int], float] = defaultdict(lambda: float("inf"))
    for _, count, (index, runner) in product(range(_NUM_ROUNDS), counts, enumerate(runners)):
        compute = step(runner, count)
        compute()
        begin = time.process_time()
        compute()
        fastest[count, index] = min(fastest[count, index], time.process_time() - begin)
    for count in counts:
        rates = [(count or _NUM_PREFILLED) / fastest[count, index] for index in range(2)]
        name = f"decode of {count}" if count else f"prefill of {_NUM_PREFILLED}"
        print(
            f"{name:<16}{rates[0]:8.1f} tokens a processor second by default, "
            f"{rates[1]:8.1f} with --deterministic",
            end="",
        )
        print(f": {rates[1] / rates[0]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--max-tokens", type=int, default=24)
    parser.add_argument("--only", choices=("answers", "company", "speed"))
    arguments, served_options = parser.parse_known_args()
    requests = bodies(arguments.requests, arguments.max_tokens)
    if arguments.only == "company":
        compare_company(arguments.model, requests, served_options)
        return
    if arguments.only != "speed":
        for options in (["--deterministic"], []):
            compare_answers(arguments.model, requests, [*options, *served_options])
    if arguments.only != "answers":
        names = [name.removeprefix("--").replace("-", "_") for name in served_options[::2]]
        compare_speed(arguments.model, dict(zip(names, served_options[1::2], strict=True)))


if __name__ == "__main__":
    main()
