"""Measures a batch of short requests: its rate, and the time that live users lose to it.

    uv run python -m benchmarks.batch [--model MODEL] [--lines 10000] [--rounds 4] [--seconds 15]

1. Rate: the batch alone through a server, from the start of its lines to their end, against the
   same token ids through the engine alone in one process (the offline engine), which neither
   renders nor tokenizes nor writes answers.
2. Users: 8 people chat over HTTP. Each reads a streamed answer, thinks, and asks again. The rounds
   alternate: without a batch, and beside a batch. A user who comes after ten calm seconds meets
   whole steps of the batch, so the first seconds of a round are left out.

The last line is JSON.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any  # JSON

import httpx

import ouzel.demo
from benchmarks.server import running_server
from ouzel.gguf.files import is_gguf
from ouzel.gguf.model_directory import model_directory
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.types.engine_request import EngineRequest

NUM_USERS = 8
THINK_S = 1.5  # average pause between an answer and the next question
LEFT_OUT_S = 3.0  # time at the begin of each round that does not count
ANSWER_TOKENS = 48
LINE_TOKENS = 16
NUM_AT_ONCE = 162  # requests in the offline engine; a batch has as many
CHATS = "/v1/chat/completions"


def make_body(number: int, num_tokens: int, model: str = "") -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": f"What is {number} plus {number % 7}?"}],
        "max_completion_tokens": num_tokens,
        "temperature": 0,
        "ignore_eos": True,
    }


# The offline engine, in a process of its own


def run_offline(model: Path, file: Path) -> None:
    """Runs the prompts in the file through the engine, and prints the seconds."""
    prompts: list[list[int]] = json.loads(file.read_text())
    with tempfile.TemporaryDirectory() as cache:
        directory = model_directory(model, Path(cache)) if is_gguf(model) else model
        engine = openvino_engine({"model": {"model": str(directory)}, "engine": {}})
    waiting = [
        EngineRequest(
            request_id=str(number),
            prompt_token_ids=prompt,
            params=SamplingParams(max_tokens=LINE_TOKENS, temperature=0.0, ignore_eos=True),
        )
        for number, prompt in enumerate(prompts)
    ][::-1]
    begin_s = time.perf_counter()
    num_open = 0
    while waiting or engine.has_unfinished():
        while waiting and num_open < NUM_AT_ONCE:
            engine.add(waiting.pop())
            num_open += 1
        num_open -= sum(output.finish_reason is not None for output in engine.step())
    print(time.perf_counter() - begin_s)
    engine.close()


def measure_offline(model: Path, prompts: Sequence[Sequence[int]]) -> float:
    """Returns the lines per second of the offline engine."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(prompts, file)
        file.flush()
        command = [sys.executable, "-m", "benchmarks.batch", "--offline", str(model), file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return len(prompts) / float(done.stdout.split()[-1])


def tokenize(url: str, num_lines: int) -> list[list[int]]:
    with httpx.Client(base_url=url, timeout=None) as http:
        prompts = []
        for number in range(num_lines):
            body = {"messages": make_body(number, 1)["messages"]}
            prompts.append(http.post("/tokenize", json=body).raise_for_status().json()["tokens"])
        return prompts


# The users


@dataclass
class Felt:
    """The times that users felt, in seconds."""

    counts_from_s: float
    first_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)


async def ask(client: httpx.AsyncClient, number: int, felt: Felt) -> None:
    body = {**make_body(number, ANSWER_TOKENS), "stream": True}
    begin_s = time.perf_counter()
    times_s = []
    async with client.stream("POST", CHATS, json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if line.startswith("data: {") and '"content":"' in line:
                times_s.append(time.perf_counter())
    if begin_s >= felt.counts_from_s:
        felt.first_s.append(times_s[0] - begin_s)
        felt.gaps_s += [after - before for before, after in pairwise(times_s)]


async def chat(client: httpx.AsyncClient, seed: int, until_s: float, felt: Felt) -> None:
    own = random.Random(seed)
    await asyncio.sleep(own.uniform(0, THINK_S))
    while time.perf_counter() < until_s:
        await ask(client, own.randrange(10**6), felt)
        await asyncio.sleep(own.uniform(0.5, 1.5) * THINK_S)


async def measure_users(url: str, seconds: float, seed: int) -> Felt:
    now_s = time.perf_counter()
    felt = Felt(now_s + LEFT_OUT_S)
    async with httpx.AsyncClient(base_url=url, timeout=None) as client:
        await asyncio.gather(
            *(
                chat(client, 100 * seed + user, now_s + LEFT_OUT_S + seconds, felt)
                for user in range(NUM_USERS)
            )
        )
    return felt


# The batch


class Batches:
    """Creates batches on a server and reads their progress."""

    def __init__(self, http: httpx.Client, model: str) -> None:
        self._http = http
        self._model = model

    def create(self, num_lines: int) -> str:
        lines = [
            {
                "custom_id": f"line-{number}",
                "method": "POST",
                "url": CHATS,
                "body": make_body(number, LINE_TOKENS, self._model),
            }
            for number in range(num_lines)
        ]
        content = "\n".join(map(json.dumps, lines)).encode()
        file = {"file": ("input.jsonl", content)}
        uploaded = self._http.post("/v1/files", data={"purpose": "batch"}, files=file)
        body = {
            "input_file_id": uploaded.raise_for_status().json()["id"],
            "endpoint": CHATS,
            "completion_window": "24h",
        }
        return str(self._http.post("/v1/batches", json=body).raise_for_status().json()["id"])

    def num_done(self, batch_id: str) -> int:
        return int(self.read(batch_id)["request_counts"]["completed"])

    def read(self, batch_id: str) -> Any:
        return self._http.get(f"/v1/batches/{batch_id}").raise_for_status().json()

    def wait(self, batch_id: str, status: str) -> None:
        while (batch := self.read(batch_id))["status"] != status:
            assert batch["status"] != "failed", batch["errors"]
            time.sleep(0.05)

    def cancel(self, batch_id: str) -> None:
        self._http.post(f"/v1/batches/{batch_id}/cancel").raise_for_status()
        self.wait(batch_id, "cancelled")


def measure_rate(batches: Batches, num_lines: int) -> float:
    """Returns the lines per second of a batch that has the server for itself."""
    batch_id = batches.create(num_lines)
    batches.wait(batch_id, "in_progress")
    begin_s = time.perf_counter()
    while batches.num_done(batch_id) < num_lines:
        time.sleep(0.05)
    seconds = time.perf_counter() - begin_s
    batches.wait(batch_id, "completed")
    return num_lines / seconds


def measure_beside(
    batches: Batches, url: str, *, num_lines: int, seconds: float, seed: int
) -> tuple[Felt, float]:
    """Returns the times of users beside a batch, and the lines per second of the batch."""
    batch_id = batches.create(num_lines)
    batches.wait(batch_id, "in_progress")
    num_before, begin_s = batches.num_done(batch_id), time.perf_counter()
    felt = asyncio.run(measure_users(url, seconds, seed))
    num_after = batches.num_done(batch_id)
    rate = (num_after - num_before) / (time.perf_counter() - begin_s)
    assert num_after < num_lines, "the batch ended before the users: it needs more lines"
    batches.cancel(batch_id)
    return felt, rate


def summarize(rounds: Sequence[Felt]) -> dict[str, float]:
    """Returns the medians over all rounds, and the 95th percentiles, in milliseconds."""
    figures = {}
    for name, values in (
        ("first", [value for felt in rounds for value in felt.first_s]),
        ("gap", [value for felt in rounds for value in felt.gaps_s]),
    ):
        cuts = statistics.quantiles(values, n=20)
        figures[f"{name}_p50_ms"] = round(1000 * statistics.median(values), 2)
        figures[f"{name}_p95_ms"] = round(1000 * cuts[18], 2)
    return figures


def measure(options: argparse.Namespace) -> dict[str, Any]:
    path = Path(options.model[0]) if options.model else find_demo_model()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        arguments = [*options.model, "--data-dir", directory, "--log-level", "warning"]
        with (
            running_server(arguments) as (url, _),
            httpx.Client(base_url=url, timeout=None) as http,
        ):
            model = http.get("/v1/models").json()["data"][0]["id"]
            batches = Batches(http, model)
            prompts = tokenize(url, options.lines)
            measure_rate(batches, min(500, options.lines))  # warm up
            results["batch_per_s"] = [measure_rate(batches, options.lines)]
            alone, beside, rates = [], [], []
            for number in range(options.rounds):
                alone.append(asyncio.run(measure_users(url, options.seconds, number)))
                felt, rate = measure_beside(
                    batches, url, num_lines=50_000, seconds=options.seconds, seed=number
                )
                beside.append(felt)
                rates.append(rate)
            results["batch_per_s"].append(measure_rate(batches, options.lines))
    print(results, flush=True)
    results["offline_per_s"] = [measure_offline(path, prompts) for _ in range(2)]
    results["ratio"] = statistics.mean(results["batch_per_s"]) / statistics.mean(
        results["offline_per_s"]
    )
    if rates:
        results["users_alone"], results["users_beside"] = summarize(alone), summarize(beside)
        results["batch_beside_users_per_s"] = statistics.median(rates)
        results["users_ratio"] = {
            name: round(results["users_beside"][name] / value, 3)
            for name, value in results["users_alone"].items()
        }
    return results


def find_demo_model() -> Path:
    assert ouzel.demo.__file__ is not None
    return Path(ouzel.demo.__file__).parent / "model"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", nargs=1, default=[], help="directory or GGUF; or the demo")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=4, help="rounds with users; 0: none")
    parser.add_argument("--seconds", type=float, default=15.0, help="time of a round")
    parser.add_argument("--offline", nargs=2, metavar=("MODEL", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.offline:
        run_offline(Path(options.offline[0]), Path(options.offline[1]))
        return
    results = measure(options)
    for name, value in results.items():
        print(f"{name}: {value}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
