"""What a streamed token costs the server when vLLM computes it: in a child process, and elsewhere over HTTP.

    python -m benchmarks.vllm_front [--rounds 7]

The engine is the tests' stand-in for vLLM, which has no model, so that a token costs what surrounds it. CPU time of the
server's own process, the two in turns; the first round warms both up.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

import httpx
import psutil

from benchmarks.vllm_engine import running
from ouzel.demo import MODEL_DIRECTORY
from tests.backends.vllm.interpreter import make_interpreter
from tests.backends.vllm.vllm_server import vllm_server

_NUM_STREAMS, _NUM_TOKENS = 64, 100
_SERVE = (sys.executable, "-m", "ouzel", "serve", "--no-store", "--log-level", "error")
_PORTS = {"elsewhere": 8102, "child": 8103}


def cpu_us_per_token(port: int) -> float:
    """Raises AssertionError where a stream does not end as it should."""
    [server] = [each for each in psutil.Process().children() if str(port) in each.cmdline()]
    before = server.cpu_times()
    asyncio.run(_streams(f"http://127.0.0.1:{port}"))
    after = server.cpu_times()
    return (
        (after.user + after.system - before.user - before.system)
        / (_NUM_STREAMS * _NUM_TOKENS)
        * 1e6
    )


async def _streams(url: str) -> None:
    async def one(http: httpx.AsyncClient, place: int) -> None:
        messages = [{"role": "user", "content": f"Hello {place}"}]
        body = {
            "messages": messages,
            "max_tokens": _NUM_TOKENS,
            "ignore_eos": True,
            "stream": True,
            "temperature": 0,
        }
        answer = await http.post("/v1/chat/completions", json=body)
        assert answer.text.endswith("data: [DONE]\n\n"), answer.text[-500:]

    limits = httpx.Limits(max_connections=_NUM_STREAMS)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as http:
        await asyncio.gather(*(one(http, place) for place in range(_NUM_STREAMS)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    python = make_interpreter(Path(tempfile.mkdtemp()))
    ways = {name: [*_SERVE, "--port", str(port)] for name, port in _PORTS.items()}
    health = {name: f"http://127.0.0.1:{port}/health" for name, port in _PORTS.items()}
    with vllm_server(model=str(MODEL_DIRECTORY)) as there:
        ways["elsewhere"] += ["--engine-url", there.url, str(MODEL_DIRECTORY)]
        ways["child"] += ["--engine", "vllm", "--engine-python", python]
        with (
            running(ways["elsewhere"], health["elsewhere"]),
            running(ways["child"], health["child"]),
        ):
            costs: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(rounds + 1):
                for name, found in costs.items():
                    cost = cpu_us_per_token(_PORTS[name])
                    if number:
                        found.append(cost)
    for name, found in costs.items():
        sys.stdout.write(
            f"{name}: {statistics.median(found):.0f} us a token ({min(found):.0f} to {max(found):.0f})\n"
        )


if __name__ == "__main__":
    main()
