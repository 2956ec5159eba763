"""The log of a server that stops names the requests for which the server waits."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from ouzel.api.app import create_app
from ouzel.api.http.drain_log import drain_with_log
from ouzel.api.http.lifespan import Lifespan
from ouzel.api.http.open_exchanges import OpenRequest
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine_client import EngineClient
from ouzel.store.sql_store import open_store
from tests.api.requests import chat, wait_until
from tests.api.responses.sockets import connect_socket
from tests.api.server_setup import ServerSetup
from tests.api.serving import running_server

LONG = "a sentence that takes for ever " * 100


class Hosted:
    """An app on a slow engine, and a client of it."""

    def __init__(self, app: Lifespan, engine: EngineClient, http: httpx.AsyncClient) -> None:
        self.app = app
        self.http = http
        self._engine = engine

    async def begin(
        self, path: str, body: dict[str, object], request_id: str
    ) -> asyncio.Task[httpx.Response]:
        """Sends a request and returns when the engine has it."""
        num_open = len(self._engine.open_request_ids)
        headers = {"x-request-id": request_id}
        task = asyncio.create_task(self.http.post(path, json=body, headers=headers))
        while len(self._engine.open_request_ids) == num_open:
            await asyncio.sleep(0.001)
        return task


@asynccontextmanager
async def hosted(tmp_path: Path) -> AsyncIterator[Hosted]:
    setup = ServerSetup({"step_s": 0.01})
    engine = EngineClient(setup.engine_spec(), in_thread=True)
    await engine.start()
    store = await open_store(
        f"sqlite:///{tmp_path}/responses.sqlite3", max_age_s=3600, max_bytes=2**30
    )
    app = create_app(setup.build_model(engine), LimitsConfig(), ServerConfig(), store)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=None
    ) as http:
        yield Hosted(app, engine, http)
    await store.close()
    await engine.close()


def read_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.getMessage().startswith("stopping")
    ]


async def test_an_aborted_request_is_named_with_its_age_and_tokens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hosted(tmp_path) as host:
        asking = await host.begin("/v1/chat/completions", chat(LONG), "the-chat")
        await host.app.drain(0)
        assert (await asking).status_code == 503

    [line] = read_lines(caplog)
    pattern = (
        r"stopping at once: aborting 1 open request "
        r"\(the-chat POST /v1/chat/completions since [\d.]+ s with \d+ t"
    )
    assert re.match(pattern, line), line


async def test_the_awaited_requests_are_named_the_oldest_first(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hosted(tmp_path) as host:
        asking = [
            await host.begin("/v1/chat/completions", chat("Hello there"), f"chat-{n}")
            for n in range(2)
        ]
        background = {"model": "parrot", "input": "Hello there", "background": True}
        asking.append(await host.begin("/v1/responses", background, "response"))
        response_id = (await asking.pop()).json()["id"]
        await host.app.drain(3600)
        assert [(await each).status_code for each in asking] == [200, 200]

    [line] = read_lines(caplog)
    assert line.startswith(
        "stopping: waiting up to 3600 s for 3 open requests "
        "(chat-0 POST /v1/chat/completions since "
    )
    assert line.index("chat-1") < line.index(f"{response_id} in the background")


async def test_a_server_without_requests_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with hosted(tmp_path) as host:
        await host.http.get("/v1/models")
        await host.app.drain(10)

    assert read_lines(caplog) == ["stopping: waiting up to 10 s for 0 open requests"]


def request(number: int) -> OpenRequest:
    return OpenRequest(f"r{number}", "POST /x", arrival_s=float(number), num_tokens=number)


def waiting_until(condition: Callable[[], bool]) -> Callable[[float], "asyncio.Future[None]"]:
    async def drain(_: float) -> None:
        while not condition():
            await asyncio.sleep(0)

    return lambda timeout_s: asyncio.ensure_future(drain(timeout_s))


async def test_the_log_repeats_the_awaited_requests(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    requests = [request(number) for number in range(13)]
    drain = waiting_until(lambda: len(read_lines(caplog)) > 3)

    await drain_with_log(drain, 3600, lambda: requests, pauses_s=(0.0,))

    first, *others = read_lines(caplog)
    assert first.startswith(
        "stopping: waiting up to 3600 s for 13 open requests (r0 POST /x since "
    )
    assert first.endswith("; and 3 more)")
    assert all(
        re.match(r"stopping: still waiting after \d+ s for 13 open requests \(r0 ", line)
        for line in others
    )


async def test_requests_open_after_the_timeout_are_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    drain = waiting_until(lambda: len(read_lines(caplog)) > 1)

    await drain_with_log(drain, 0.001, lambda: [request(1)])

    assert [line.split(" (")[0] for line in read_lines(caplog)] == [
        "stopping: waiting up to 0.001 s for 1 open request",
        "stopping: aborting after 0.001 s 1 open request",
    ]


def test_requests_of_a_websocket_are_named_and_not_their_connection() -> None:
    with (
        running_server({"step_s": 0.01, "max_model_len": 8192}) as server,
        connect_socket(server.url) as socket,
    ):
        socket.create(LONG)
        socket.event()
        [open_request] = server.catalogue.shared.open_requests()
        socket.connection.close()
        wait_until(lambda: not server.catalogue.shared.open_requests())

    assert open_request.request_id.endswith("/1")
    assert open_request.endpoint == "response.create /v1/responses"
