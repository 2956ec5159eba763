"""Measures the time that Ray Serve adds to the time to the first token.

    uv run python -m benchmarks.ray_front [--rounds 8] [--clients 32]

Two replicas behind Ray's HAProxy (fewest open requests) take turns with the same app in two
processes, which the clients divide among themselves. Engines step every 10 ms, so no engine takes
the cores of Ray's processes, and the difference is the cost of Ray. `tests.cluster.ray_cluster`
installs Ray and starts it.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.first_token import measure
from tests.cluster.ray_cluster import ROOT, find_free_port, running_cluster

_SETTLING_S = 10.0  # HAProxy is replaced when replicas come, and closes connections


async def _until_ready(url: str) -> None:
    """Waits until the server answers, without a limit."""
    async with httpx.AsyncClient(timeout=None) as http:
        while True:
            try:
                if (await http.get(f"{url}/health")).status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.2)


async def _compare(
    ray_url: str, alone_urls: list[str], num_clients: list[int], rounds: int
) -> None:
    for url in (ray_url, *alone_urls):
        await _until_ready(url)
    for each in num_clients:
        await measure({"alone": ",".join(alone_urls), "ray": ray_url}, each, rounds, seconds=2.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("-c", "--clients", type=int, action="append")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT)  # the engines' processes read it
    ports = [find_free_port(), find_free_port()]
    with (
        tempfile.NamedTemporaryFile(suffix=".yaml") as no_models,
        running_cluster("", Path(no_models.name)) as cluster,
    ):
        command = [sys.executable, "-m", "benchmarks.fixed_steps"]
        servers = [subprocess.Popen([*command, str(port)]) for port in ports]
        try:
            cluster.deploy_from(
                "benchmarks.fixed_steps:build",
                {"runtime_env": {"env_vars": {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}}},
            )
            cluster.wait_for(2)
            time.sleep(_SETTLING_S)
            alone_urls = [f"http://127.0.0.1:{port}" for port in ports]
            asyncio.run(
                _compare(cluster.url, alone_urls, given.clients or [1, 8, 32], given.rounds)
            )
        finally:
            for server in servers:
                server.terminate()


if __name__ == "__main__":
    main()
