"""Checks vLLM as Ouzel's engine on a machine with a GPU, and compares its speed with `vllm serve`.

    python -m benchmarks.vllm_engine MODEL --engine-python /opt/vllm/bin/python [--elsewhere]
        [--rounds 5]

Both servers run at once, each with its share of the memory, and get requests in turns. The exit
status is 1 if a check fails, or if the median of the ratios of throughput is below the bar. With
`--elsewhere` Ouzel reaches the very server that it is compared with, over HTTP (`--engine-url`).
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # JSON

import httpx

Json = dict[str, Any]

_BAR = 0.95
_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Rome"]},
        "warm": {"type": "boolean"},
    },
    "required": ["city", "warm"],
    "additionalProperties": False,
}
_TOOL = {"type": "function", "function": {"name": "weather", "parameters": _SCHEMA}}
_ASK = {
    "messages": [{"role": "user", "content": "How is the weather in Oslo? It may be warm."}],
    "temperature": 0,
}


@contextmanager
def running(
    command: Sequence[str], health: str, environment: dict[str, str] | None = None
) -> Iterator[None]:
    """Starts the command, and waits until its health check succeeds; loading takes minutes."""
    process = subprocess.Popen(command, stdout=sys.stderr, env=os.environ | (environment or {}))
    try:
        while True:
            assert process.poll() is None, f"it ended at its start: {' '.join(command)}"
            try:
                if httpx.get(health).status_code == httpx.codes.OK:
                    break
            except httpx.TransportError:
                pass
            time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait()


class Checks:
    """Prints the outcome of each check, and remembers whether all hold."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=None)
        self.failed: list[str] = []

    def run(self) -> None:
        for name in (
            "a_tool_call",
            "a_form",
            "logprobs",
            "choices",
            "a_hit",
            "an_abort",
            "a_refusal",
            "streams",
        ):
            try:
                getattr(self, f"_{name}")()
                self._say(name, "holds")
            except (AssertionError, KeyError, IndexError, ValueError, httpx.HTTPError) as error:
                self.failed.append(name)
                self._say(name, f"FAILS: {error!r}")

    def _say(self, name: str, verdict: str) -> None:
        sys.stdout.write(f"{name.replace('_', ' ')}: {verdict}\n")

    def _chat(self, **fields: object) -> Json:
        answer = self._http.post("/v1/chat/completions", json={**_ASK, "max_tokens": 200, **fields})
        assert answer.status_code == httpx.codes.OK, answer.text
        content: Json = answer.json()
        return content

    def _a_tool_call(self) -> None:
        message = self._chat(tools=[_TOOL], tool_choice="required")["choices"][0]["message"]
        arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
        assert arguments["city"] in ("Oslo", "Rome"), message
        assert isinstance(arguments["warm"], bool), message

    def _a_form(self) -> None:
        form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": _SCHEMA}}
        content = json.loads(
            self._chat(response_format=form, max_tokens=2000)["choices"][0]["message"]["content"]
        )
        assert set(content) == {"city", "warm"}, content

    def _logprobs(self) -> None:
        entries = self._chat(logprobs=True, top_logprobs=3, max_tokens=8)["choices"][0]["logprobs"][
            "content"
        ]
        assert len(entries) >= 1
        for entry in entries:
            best = [each["logprob"] for each in entry["top_logprobs"]]
            assert best == sorted(best, reverse=True), entry
            assert len(best) == 3, entry
            assert entry["logprob"] == best[0], f"greedy takes the most likely: {entry}"

    def _choices(self) -> None:
        body = {"n": 3, "temperature": 1.0, "seed": 7, "max_tokens": 24}
        first, second = (self._chat(**body) for _ in range(2))
        texts = [[choice["message"] for choice in answer["choices"]] for answer in (first, second)]
        assert len(texts[0]) == 3
        assert texts[0] == texts[1], "the same seed gives the same answers"

    def _a_hit(self) -> None:
        said = [{"role": "user", "content": "Remember this. " * 400}]
        for _ in range(2):
            usage = self._chat(messages=said, max_tokens=1)["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] // 2, usage

    def _an_abort(self) -> None:
        body = {**_ASK, "max_tokens": 4000, "ignore_eos": True, "stream": True}
        with self._http.stream("POST", "/v1/chat/completions", json=body) as answer:
            next(answer.iter_lines())
        for _ in range(100):
            if self._num_running() == 0:
                return
            time.sleep(0.1)
            self._chat(max_tokens=1)  # statistics come with steps
        raise AssertionError("the request still runs")

    def _num_running(self) -> float:
        lines = self._http.get("/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("vllm:num_requests_running{")
        )

    def _a_refusal(self) -> None:
        answer = self._http.post("/v1/chat/completions", json={**_ASK, "typical_p": 0.5})
        assert (answer.status_code, answer.json()["error"]["param"]) == (
            httpx.codes.BAD_REQUEST,
            "typical_p",
        )

    def _streams(self) -> None:
        ended = asyncio.run(_streams(str(self._http.base_url), 64))
        assert ended == 64, f"{ended} of 64 ended as they should"


async def _streams(url: str, num: int) -> int:
    async def one(http: httpx.AsyncClient, place: int) -> bool:
        body = {**_ASK, "max_tokens": 64, "ignore_eos": True, "stream": True, "seed": place}
        body["stream_options"] = {"include_usage": True}
        lines = (await http.post("/v1/chat/completions", json=body)).text.splitlines()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        return lines[-2:] == ["data: [DONE]", ""] and chunks[-1]["usage"]["completion_tokens"] == 64

    limits = httpx.Limits(max_connections=num)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as http:
        return sum(await asyncio.gather(*(one(http, place) for place in range(num))))


def throughput(root: str, concurrency: int) -> float:
    """Returns output tokens per second, as `ouzel bench` measures them."""
    with tempfile.TemporaryDirectory() as directory:
        saved = Path(directory) / "result.json"
        command = [
            sys.executable,
            "-m",
            "ouzel",
            "bench",
            "--url",
            f"{root}/v1",
            "--save",
            str(saved),
        ]
        command += [
            "--input-len",
            "512",
            "--output-len",
            "256",
            "--num-prompts",
            str(4 * concurrency),
        ]
        command += ["--max-concurrency", str(concurrency), "--extra-body", '{"ignore_eos": true}']
        subprocess.run(command, check=True, stdout=sys.stderr)
        [result] = _results(json.loads(saved.read_text()))
    return float(result["output_throughput"])


def _results(saved: Any) -> list[Json]:
    found: list[Json] = saved if isinstance(saved, list) else [saved]
    return found


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--engine-python", required=True, help="of the environment that has vLLM")
    parser.add_argument("--elsewhere", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--gpu-memory-utilization", type=float, default=0.42, help="of each server")
    chosen = parser.parse_args(arguments)
    theirs, ours = "http://127.0.0.1:8101", "http://127.0.0.1:8102"
    share = ["--gpu-memory-utilization", str(chosen.gpu_memory_utilization)]
    vllm = [str(Path(chosen.engine_python).parent / "vllm"), "serve", chosen.model, *share]
    vllm += [
        "--port",
        "8101",
        "--enable-scale-out",
        "--scheduling-policy",
        "priority",
        "--max-logprobs",
        "20",
    ]
    vllm += [
        "--enable-prompt-tokens-details",
        "--structured-outputs-config",
        '{"backend": "guidance"}',
    ]
    ouzel = [sys.executable, "-m", "ouzel", "serve", chosen.model, "--port", "8102", "--no-store"]
    if chosen.elsewhere:
        ouzel += ["--engine-url", theirs, "--engine-priorities", "--max-num-seqs", "512"]
    else:
        ouzel += ["--engine", "vllm", "--engine-python", chosen.engine_python, *share]
    with running(vllm, f"{theirs}/health"), running(ouzel, f"{ours}/health"):
        checks = Checks(ours)
        checks.run()
        ratios: list[float] = []
        for number in range(chosen.rounds + 1):  # the first warms both up
            beside = throughput(theirs, chosen.concurrency)
            own = throughput(ours, chosen.concurrency)
            if number:
                ratios.append(own / beside)
                sys.stdout.write(
                    f"round {number}: vllm serve {beside:.0f} tokens/s, Ouzel {own:.0f}, "
                    f"{ratios[-1]:.3f}\n"
                )
    ratio = statistics.median(ratios)
    sys.stdout.write(f"median of the ratios: {ratio:.3f}, at least {_BAR} is wanted\n")
    return int(bool(checks.failed) or ratio < _BAR)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
