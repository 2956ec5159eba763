"""Times the first event of a streamed response with a long prompt, and its cancellation.

    uv run python -m benchmarks.first_event MODEL [--tokens 13000] [--rounds 7] [--no-store]
        [option of `serve` ...]

The program starts `ouzel serve MODEL`, on Linux. Each round has a prompt of its own (shuffled lines
of the documents in `docs/`), which the prefix cache does not hold, and measures in milliseconds:

- `created`: from the request to `response.created`; `created, CPU`: the processor time of the
  server's process (without the engine's) until then;
- `prepared`: `POST /v1/responses/input_tokens` of the same body: decoding, template, tokenization,
  without a response;
- `cancelled`: from `POST /v1/responses/{id}/cancel` to its answer, and `ended`: to the end of the
  stream; `before its first token` is 0 if the cancellation came after the first token.

The last line is JSON, with the medians.
"""

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psutil

from benchmarks.server import running_server

Figures = dict[str, float]


def lines_of_documents() -> list[str]:
    files = sorted((Path(__file__).parent.parent / "docs").rglob("*.md"))
    return [line for file in files for line in file.read_text().splitlines() if line]


class Prompts:
    """Makes texts of about the given number of tokens; no two begin alike."""

    def __init__(self, http: httpx.Client, num_tokens: int) -> None:
        self._http = http
        self._lines = lines_of_documents()
        self._num_tokens = num_tokens
        self._num_chars = 0
        sample = self._text(10**9)[: 4 * num_tokens]
        self._num_chars = len(sample) * num_tokens // self.count(sample)

    def next(self) -> str:
        return self._text(self._num_chars)

    def count(self, text: str) -> int:
        answer = self._http.post("/v1/responses/input_tokens", json={"input": text})
        return int(answer.raise_for_status().json()["input_tokens"])

    def _text(self, num_chars: int) -> str:
        text = ""
        while len(text) < min(num_chars, 4 * self._num_tokens):
            text += "\n".join([str(random.random()), *random.sample(self._lines, len(self._lines))])
        return text[:num_chars]


def events(answer: httpx.Response) -> Iterator[tuple[str, float, str]]:
    """Yields the name of each event, its time, and its data."""
    name = ""
    for line in answer.iter_lines():
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data" and value != "[DONE]":
            yield name, time.perf_counter(), value


def one_round(http: httpx.Client, prompt: str, server: psutil.Process) -> Figures:
    body = json.dumps(
        {"model": "model", "input": prompt, "stream": True, "max_output_tokens": 16}
    ).encode()
    begun_s, used = time.perf_counter(), cpu_s(server)
    with http.stream(
        "POST", "/v1/responses", content=body, headers={"content-type": "application/json"}
    ) as answer:
        answer.raise_for_status()
        coming = events(answer)
        name, created_s, data = next(coming)
        cpu_ms = 1000 * (cpu_s(server) - used)
        assert name == "response.created", name
        response_id = json.loads(data)["response"]["id"]
        with httpx.Client(base_url=http.base_url, timeout=None) as other:
            other.get("/health")  # so that the connection is open
            cancelling_s = time.perf_counter()
            cancelled = other.post(f"/v1/responses/{response_id}/cancel").raise_for_status().json()
            cancelled_s = time.perf_counter()
        *_, (name, ended_s, data) = coming
    end = json.loads(data)["response"]
    assert (
        (name, end["status"]) == ("response.incomplete", "cancelled") == (name, cancelled["status"])
    ), end
    return {
        "created": 1000 * (created_s - begun_s),
        "created, CPU": cpu_ms,
        "cancelled": 1000 * (cancelled_s - cancelling_s),
        "ended": 1000 * (ended_s - cancelling_s),
        "before its first token": float(not end["output"]),  # 1 or 0
    }


def cpu_s(process: psutil.Process) -> float:
    """Returns the processor time of all threads, in finer steps than psutil."""
    files = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9


def until_idle(http: httpx.Client) -> None:
    """Waits until the engine has no request and no block in use."""
    while any(
        name.startswith(("vllm:kv_cache_usage_perc", "vllm:num_requests")) and float(value) != 0
        for name, _, value in (
            line.rpartition(" ") for line in http.get("/metrics").text.splitlines()
        )
    ):
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=13_000)
    parser.add_argument("--rounds", type=int, default=7)
    options, of_server = parser.parse_known_args()
    rounds: list[Figures] = []
    with (
        TemporaryDirectory() as directory,
        running_server(
            [options.model, "--served-model-name", "model", "--log-level", "error"]
            + (
                of_server
                if "--no-store" in of_server
                else [*of_server, "--store-url", f"sqlite:///{directory}/store"]
            )
        ) as (url, server),
        httpx.Client(base_url=url, timeout=None) as http,
    ):
        prompts = Prompts(http, options.tokens)
        for number in range(options.rounds + 1):  # the first warms up
            prompt = prompts.next()
            started_s = time.perf_counter()
            num_tokens = prompts.count(prompt)
            prepared_ms = 1000 * (time.perf_counter() - started_s)
            figures = {"prepared": prepared_ms, **one_round(http, prompts.next(), server)}
            until_idle(http)
            load = f"{num_tokens} tokens, load {os.getloadavg()[0]:.1f}"
            print(load, {name: round(value, 1) for name, value in figures.items()}, flush=True)
            rounds += [figures] if number else []
    print(
        json.dumps(
            {name: round(statistics.median(each[name] for each in rounds), 1) for name in rounds[0]}
        )
    )


if __name__ == "__main__":
    main()
