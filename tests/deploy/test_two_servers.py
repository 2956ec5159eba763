"""Two servers on one Postgres behind the proxy of the compose file: one goes or is killed, as docs/scaling.md tells."""

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from tests.cli.running import RunningServer, serving
from tools.deploy.containerfile import ROOT

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin") or ""
NUM_STREAMS, NUM_BACKGROUND = 12, 4
NUM_TOKENS = 900  # they take longer than the proxy needs to see that a server drains
DRAIN = ("--drain-grace-s", "4", "--drain-timeout-s", "600")
pytestmark = [
    pytest.mark.release("two servers on one Postgres behind HAProxy, of which one goes or is killed under load"),
    pytest.mark.skipif(not HAPROXY, reason="there is no haproxy (apt-get install haproxy)"),
]


@contextmanager
def proxied(servers: list[RunningServer], directory: Path) -> Iterator[str]:
    """The proxy with the file of the compose file, in which only addresses are others."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    text = (ROOT / "deploy" / "compose" / "haproxy.cfg").read_text().replace("bind :8000", f"bind 127.0.0.1:{port}")
    for number, server in enumerate(servers, start=1):
        own, checked = urlsplit(server.root).port, urlsplit(server.metrics_root).port
        text, times = re.subn(rf"ouzel-{number}:8000", f"127.0.0.1:{own} port {checked}", text)
        assert times == 1
    file = directory / "haproxy.cfg"
    file.write_text(text)
    process = subprocess.Popen([HAPROXY, "-db", "-f", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


async def stream(client: httpx.AsyncClient, begun: asyncio.Semaphore) -> str:
    """Returns its finish reason, or that it broke."""
    body = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": NUM_TOKENS, "ignore_eos": True}
    reason = "broken"
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body | {"stream": True}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    begun.release()
                    reason = json.loads(line[6:])["choices"][0]["finish_reason"] or reason
    except httpx.TransportError:
        return "broken"
    return reason


async def background(client: httpx.AsyncClient) -> str:
    body = {"input": "Count.", "background": True, "max_output_tokens": NUM_TOKENS, "ignore_eos": True}
    return str((await client.post("/v1/responses", json=body)).json()["id"])


async def end_of(client: httpx.AsyncClient, response_id: str) -> str:
    while True:
        status = str((await client.get(f"/v1/responses/{response_id}")).json()["status"])
        if status not in ("queued", "in_progress"):
            return status
        await asyncio.sleep(0.2)


async def short_requests(client: httpx.AsyncClient, ended: asyncio.Event) -> Counter[int]:
    statuses = Counter[int]()
    while not ended.is_set():
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
        statuses[(await client.post("/v1/chat/completions", json=body)).status_code] += 1
    return statuses


async def under_load(client: httpx.AsyncClient, act: Callable[[], None]) -> tuple[Counter[str], Counter[str]]:
    """Acts when all streams and background responses have begun; returns how many of each ended in which way."""
    begun = asyncio.Semaphore(0)
    streams = [asyncio.create_task(stream(client, begun)) for _ in range(NUM_STREAMS)]
    responses = [await background(client) for _ in range(NUM_BACKGROUND)]
    for _ in range(NUM_STREAMS):
        await begun.acquire()
    act()
    return (
        Counter(await asyncio.gather(*streams)),
        Counter(await asyncio.gather(*(end_of(client, response_id) for response_id in responses))),
    )


async def test_one_goes_and_nobody_notices(servers: list[RunningServer], client: httpx.AsyncClient) -> None:
    leaver = servers[0]
    ended = asyncio.Event()
    others = asyncio.create_task(short_requests(client, ended))

    streams, responses = await under_load(client, lambda: leaver.process.send_signal(signal.SIGTERM))
    status = await asyncio.to_thread(leaver.process.wait)
    ended.set()

    assert (streams, responses) == ({"length": NUM_STREAMS}, {"incomplete": NUM_BACKGROUND})
    assert (set(await others), status) == ({200}, 0)


async def test_one_is_killed_and_the_other_settles(servers: list[RunningServer], client: httpx.AsyncClient) -> None:
    dying = psutil.Process(servers[0].process.pid)

    def kill() -> None:
        for process in (*dying.children(recursive=True), dying):
            process.kill()

    streams, responses = await under_load(client, kill)

    assert streams == {"broken": NUM_STREAMS - streams["length"], "length": streams["length"]}
    assert 0 < streams["broken"] < NUM_STREAMS
    assert set(responses) <= {"failed", "incomplete"}
