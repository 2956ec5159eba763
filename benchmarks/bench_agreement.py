"""`ouzel bench` and aiperf measure the same server by turns, with the same prompts; their figures must agree.

    uv run python -m benchmarks.bench_agreement --aiperf /path/to/its/venv/bin/aiperf [--url URL --tokenizer DIRECTORY]

Without --url the server is one that sleeps: each prompt has its own time to the first token and between tokens, whoever
asks and whatever else the machine does. (A step of an engine takes in what has arrived when it begins. So who sends the
next request at once waits longer for its first token than who takes some milliseconds for it, and both are right.)
aiperf is installed in an environment of its own.
"""

import argparse
import asyncio
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from benchmarks.api import MODEL_DIRECTORY, SPAWN

NUM_PROMPTS = 64
OUTPUT_LEN = 48
CONCURRENCY = 4
TEXT = "ask the owl of the far north what it hears below the snow in the long nights before spring"

# Label: our field, then aiperf's metric and its statistic.
FIGURES = {
    "requests/s": ("request_throughput", "request_throughput", "avg"),
    "output tokens/s": ("output_throughput", "output_token_throughput", "avg"),
    "TTFT, mean (ms)": ("mean_ttft_ms", "time_to_first_output_token", "avg"),
    "TTFT, p50 (ms)": ("median_ttft_ms", "time_to_first_output_token", "p50"),
    "TPOT, mean (ms)": ("mean_tpot_ms", "inter_token_latency", "avg"),
    "TPOT, p50 (ms)": ("median_tpot_ms", "inter_token_latency", "p50"),
    "E2E, mean (ms)": ("mean_e2el_ms", "request_latency", "avg"),
    "E2E, p50 (ms)": ("median_e2el_ms", "request_latency", "p50"),
    "E2E, p99 (ms)": ("p99_e2el_ms", "request_latency", "p99"),
}


def write_prompts(directory: Path) -> tuple[Path, Path]:
    """Returns our file and aiperf's, which begins with what its warm-up takes: the order weighs on how a run ends."""
    rng = random.Random(7)
    prompts = [" ".join(rng.choices(TEXT.split(), k=60)) for _ in range(NUM_PROMPTS)]
    ours, theirs = directory / "ours.jsonl", directory / "theirs.jsonl"
    ours.write_text(
        "".join(
            json.dumps({"prompt": each, "output_tokens": OUTPUT_LEN}) + "\n" for each in prompts
        )
    )
    theirs.write_text(
        "".join(json.dumps({"text": each}) + "\n" for each in (prompts[-1], *prompts[:-1]))
    )
    return ours, theirs


# The server that sleeps


async def list_models(_: Request) -> JSONResponse:
    return JSONResponse({"object": "list", "data": [{"id": "asleep", "object": "model"}]})


async def answer(request: Request) -> StreamingResponse:
    body = await request.json()
    return StreamingResponse(
        chunks(json.dumps(body["messages"]), body["max_tokens"]), media_type="text/event-stream"
    )


async def chunks(prompt: str, num_tokens: int) -> AsyncGenerator[str, None]:
    """Times are counted from the beginning, so that a late chunk does not make all others late."""
    rng = random.Random(prompt)
    due_s = time.perf_counter() + rng.uniform(0.05, 0.25)
    between_s = rng.uniform(0.015, 0.03)
    for _ in range(num_tokens):
        await asyncio.sleep(max(due_s - time.perf_counter(), 0))
        due_s += between_s
        yield event(
            {"choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None}]}
        )
    yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    usage = {"prompt_tokens": 60, "completion_tokens": num_tokens, "total_tokens": 60 + num_tokens}
    yield event({"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def event(fields: Mapping[str, object]) -> str:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "asleep", **fields}
    return f"data: {json.dumps(chunk)}\n\n"


def serve(listener: socket.socket) -> None:
    app = Starlette(
        routes=[
            Route("/v1/models", list_models),
            Route("/v1/chat/completions", answer, methods=["POST"]),
        ]
    )
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listener])


# The clients


@dataclass(frozen=True)
class Common:
    """What both are told."""

    url: str
    model: str
    tokenizer: Path  # aiperf wants one, and counts by the server's usage all the same
    directory: Path


def ours(common: Common, prompts: Path) -> list[float]:
    saved = common.directory / "ours.json"
    command = [
        sys.executable,
        "-m",
        "ouzel",
        "bench",
        "--url",
        common.url,
        "--dataset",
        str(prompts),
    ]
    command += ["--max-concurrency", str(CONCURRENCY), "--save", str(saved)]
    run(command)
    result: Mapping[str, float] = json.loads(saved.read_bytes())
    return [result[name] for name, _, _ in FIGURES.values()]


def theirs(common: Common, prompts: Path, aiperf: str) -> list[float]:
    artifacts = common.directory / "aiperf"
    command = [
        aiperf,
        "profile",
        "--model",
        common.model,
        "--url",
        common.url,
        "--endpoint-type",
        "chat",
    ]
    command += ["--streaming", "--input-file", str(prompts), "--custom-dataset-type", "single_turn"]
    command += ["--dataset-sampling-strategy", "sequential", "--concurrency", str(CONCURRENCY)]
    command += [
        "--request-count",
        str(NUM_PROMPTS),
        "--use-server-token-count",
        "--tokenizer",
        str(common.tokenizer),
    ]
    for field in ("ignore_eos:true", "temperature:0", f"max_tokens:{OUTPUT_LEN}"):
        command += ["--extra-inputs", field]
    run(
        [
            *command,
            "--warmup-request-count",
            "1",
            "--output-artifact-dir",
            str(artifacts),
            "--ui",
            "none",
        ]
    )
    result: Mapping[str, Any] = json.loads((artifacts / "profile_export_aiperf.json").read_bytes())
    return [float(result[metric][statistic]) for _, metric, statistic in FIGURES.values()]


def run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def compare(aiperf: str, url: str, tokenizer: Path, num_repeats: int) -> None:
    with urllib.request.urlopen(f"{url}/v1/models") as listed:
        model = json.load(listed)["data"][0]["id"]
    rows: list[tuple[list[float], list[float]]] = []
    with tempfile.TemporaryDirectory() as name:
        common = Common(url, model, tokenizer, Path(name))
        our_prompts, their_prompts = write_prompts(common.directory)
        for number in range(num_repeats):
            rows.append((ours(common, our_prompts), theirs(common, their_prompts, aiperf)))
            print(f"{number + 1} of {num_repeats}", file=sys.stderr)
    print(f"{f'median of {num_repeats}':20}{'ouzel bench':>14}{'aiperf':>14}{'ratio':>9}")
    for position, label in enumerate(FIGURES):
        a, b = (statistics.median(row[side][position] for row in rows) for side in (0, 1))
        print(f"{label:20}{a:14.2f}{b:14.2f}{a / b:9.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aiperf", required=True)
    parser.add_argument("--url", default="", help="of a server's root, without /v1")
    parser.add_argument("--tokenizer", type=Path, default=MODEL_DIRECTORY)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.url:
        compare(arguments.aiperf, arguments.url, arguments.tokenizer, arguments.repeats)
        return
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = SPAWN.Process(target=serve, args=(listener,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        compare(arguments.aiperf, url, arguments.tokenizer, arguments.repeats)
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
