"""Responses in progress at the end of the app's lifespan finish under any ASGI server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.types import ASGIApp, Message, Scope

from ouzel.api.app import create_app
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.engine_client import EngineClient
from ouzel.store.records import Status, StoredResponse
from ouzel.store.sql_store import SqlStore, open_store
from tests.api.requests import Json
from tests.api.server_setup import ServerSetup

SAID = "a sentence that takes the slow engine some time to say"
BACKGROUND: Json = {"model": "parrot", "input": SAID, "background": True}


class Hosted:
    """The app on an engine of its own; only the lifespan ends the app's responses."""

    def __init__(self, app: ASGIApp, store: SqlStore) -> None:
        self.app = app
        self.store = store

    async def stored(self, response_id: str) -> StoredResponse:
        response = await self.store.response(response_id, None)
        assert response is not None
        return response


@asynccontextmanager
async def host_app(tmp_path: Path, *, drain_timeout_s: float = 3600) -> AsyncIterator[Hosted]:
    limits = LimitsConfig(drain_timeout_s=drain_timeout_s)
    setup = ServerSetup({"step_s": 0.01}, limits)
    engine = EngineClient(setup.engine_spec(), in_thread=True)
    await engine.start()
    store = await open_store(
        f"sqlite:///{tmp_path}/responses.sqlite3", max_age_s=3600, max_bytes=2**30
    )
    yield Hosted(create_app(setup.build_model(engine), limits, ServerConfig(), store), store)
    await store.close()
    await engine.close()


class Lifetime:
    """Sends the app the lifespan messages of the ASGI specification, and nothing else."""

    def __init__(self, app: ASGIApp) -> None:
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._app = asyncio.create_task(self._run(app, scope))

    async def _run(self, app: ASGIApp, scope: Scope) -> None:
        await app(scope, self._to_app.get, self._from_app.put)

    async def tell(self, what: str) -> None:
        await self._to_app.put({"type": f"lifespan.{what}"})
        assert (await self._from_app.get())["type"] == f"lifespan.{what}.complete"


def build_client(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=None
    )


async def test_a_lifespan_waits_for_responses_in_the_background(tmp_path: Path) -> None:
    async with host_app(tmp_path) as host, build_client(host.app) as http:
        lifetime = Lifetime(host.app)
        await lifetime.tell("startup")
        ids = [(await http.post("/v1/responses", json=BACKGROUND)).json()["id"] for _ in range(4)]
        await lifetime.tell("shutdown")
        for response_id in ids:
            stored = await host.stored(response_id)
            assert stored.status is Status.COMPLETED
            assert json.loads(stored.body)["output"][0]["content"][0]["text"] == SAID
        refused = await http.post("/v1/responses", json=BACKGROUND)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "engine_unavailable")


async def test_a_lifespan_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    async with host_app(tmp_path, drain_timeout_s=0.05) as host, build_client(host.app) as http:
        lifetime = Lifetime(host.app)
        await lifetime.tell("startup")
        response_id = (
            await http.post("/v1/responses", json={**BACKGROUND, "input": SAID * 60})
        ).json()["id"]
        while (await host.stored(response_id)).status is Status.QUEUED:
            await asyncio.sleep(0.005)
        await lifetime.tell("shutdown")
        assert (await host.stored(response_id)).status is Status.FAILED


async def test_a_plain_uvicorn_that_stops_finishes_responses_in_the_background(
    tmp_path: Path,
) -> None:
    async with host_app(tmp_path) as host:
        server = uvicorn.Server(uvicorn.Config(host.app, port=0, lifespan="on", log_config=None))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(timeout=None) as http:
            answer = await http.post(f"http://127.0.0.1:{port}/v1/responses", json=BACKGROUND)
        server.should_exit = True
        await serving
        assert (await host.stored(answer.json()["id"])).status is Status.COMPLETED
