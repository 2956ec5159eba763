"""Runs two servers on one Postgres behind the proxy of the compose file, and stops or kills one.

docs/how-to/scaling.md describes the expected behaviour.
"""

import asyncio
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.deploy.load import NUM_BACKGROUND, NUM_STREAMS, short_requests, under_load
from tests.serve.running import RunningServer, serving
from tools.deploy.containerfile import ROOT

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin") or ""
DRAIN = ("--drain-grace-s", "4", "--drain-timeout-s", "600")
pytestmark = [
    pytest.mark.release(
        "two servers on one Postgres behind HAProxy, of which one goes or is killed under load"
    ),
    pytest.mark.skipif(not HAPROXY, reason="there is no haproxy (apt-get install haproxy)"),
]


@contextmanager
def proxied(servers: list[RunningServer], directory: Path) -> Iterator[str]:
    """Starts the proxy with the compose file's configuration, in which only addresses differ."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    text = (
        (ROOT / "deploy" / "compose" / "haproxy.cfg")
        .read_text()
        .replace("bind :8000", f"bind 127.0.0.1:{port}")
    )
    for number, server in enumerate(servers, start=1):
        own, checked = urlsplit(server.root).port, urlsplit(server.metrics_root).port
        text, times = re.subn(rf"ouzel-{number}:8000", f"127.0.0.1:{own} port {checked}", text)
        assert times == 1
    file = directory / "haproxy.cfg"
    file.write_text(text)
    process = subprocess.Popen(
        [HAPROXY, "-db", "-f", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def servers(postgres_url: str, tmp_path: Path) -> Iterator[list[RunningServer]]:
    with ExitStack() as stack:
        options = ("--store-url", postgres_url, "--metrics-port", "0", *DRAIN)
        yield [stack.enter_context(serving(*options, cache_dir=tmp_path)) for _ in range(2)]


@pytest.fixture
async def client(servers: list[RunningServer], tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Tries again to connect: the proxy begins to listen."""
    transport = httpx.AsyncHTTPTransport(retries=20)
    with proxied(servers, tmp_path) as address:
        async with httpx.AsyncClient(base_url=address, timeout=None, transport=transport) as client:
            yield client


async def test_one_goes_and_nobody_notices(
    servers: list[RunningServer], client: httpx.AsyncClient
) -> None:
    leaver = servers[0]
    ended = asyncio.Event()
    others = asyncio.create_task(short_requests(client, ended))

    streams, responses = await under_load(
        client, lambda: leaver.process.send_signal(signal.SIGTERM)
    )
    status = await asyncio.to_thread(leaver.process.wait)
    ended.set()

    assert (streams, responses) == ({"length": NUM_STREAMS}, {"incomplete": NUM_BACKGROUND})
    assert (set(await others), status) == ({200}, 0)


async def test_one_is_killed_and_the_other_settles(
    servers: list[RunningServer], client: httpx.AsyncClient
) -> None:
    dying = psutil.Process(servers[0].process.pid)

    def kill() -> None:
        for process in (*dying.children(recursive=True), dying):
            process.kill()

    streams, responses = await under_load(client, kill)

    assert streams == {"broken": NUM_STREAMS - streams["length"], "length": streams["length"]}
    assert 0 < streams["broken"] < NUM_STREAMS
    assert set(responses) <= {"failed", "incomplete"}
