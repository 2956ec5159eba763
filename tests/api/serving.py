"""Starts a real server on an ephemeral port; its default engine repeats the user's message."""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import ParamSpec

import httpx

from ouzel.api.app import build_app
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.http.server.http_server import HttpServer
from ouzel.api.ovms.responses import response_dialect
from ouzel.config import LimitsConfig
from ouzel.engine_client import EngineClient
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.responses.hosted.code_interpreter_kind import CodeInterpreterKind
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.shell_kind import ShellKind
from ouzel.serve.prompt_files import open_prompts
from ouzel.store.base import Store
from ouzel.store.sql_store import open_store
from ouzel.store.vector_stores.room import SizeLimits
from tests.api.server_setup import ServerSetup


class ThreadHost:
    """Implements `ModelLoader` with engines in threads.

    It can load one model, "parrot", under any name. A load of "endless" never ends.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self.engines: list[EngineClient] = []

    async def serve(self, setup: ServerSetup) -> ServedModel:
        engine = EngineClient(
            setup.engine_spec(),
            in_thread=True,
            max_queued_requests=self._limits.max_queued_requests,
            step_timeout_s=setup.step_timeout_s,
        )
        self.engines.append(engine)
        await engine.start()
        return setup.build_model(engine)

    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        if fields.get("model") == "endless":
            await asyncio.Event().wait()
        if fields.get("model") != "parrot":
            raise InvalidRequest(f"there is no directory {fields.get('model')}", param="model")
        return await self.serve(ServerSetup(names=(str(fields["name"]),)))

    async def unload(self, model: ServedModel) -> None:
        await model.engine.drain(self._limits.drain_timeout_s)
        await model.engine.close()
        model.renderer.close()

    async def close(self) -> None:
        for engine in self.engines:
            await engine.close()


class RunningServer:
    """A server thread with an event loop of its own."""

    def __init__(self, setup: ServerSetup) -> None:
        self._setup = setup
        # asyncio sets TCP_NODELAY only if the socket names its protocol. Without TCP_NODELAY,
        # small answers wait for delayed acknowledgements.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.engine: EngineClient
        self.model: ServedModel
        self.catalogue: Catalogue
        self._server: HttpServer
        self._loop: asyncio.AbstractEventLoop

    def client(self) -> httpx.Client:
        """Returns a client without timeouts, so that no test fails because the machine is slow."""
        return httpx.Client(base_url=self.url, timeout=None)

    def shrink_send_buffers(self) -> None:
        """Shrinks the send buffers of new connections: the server soon notices a slow client."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()
        assert self._server.started, "the server's thread ended at its start"

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Runs `work` in the server's event loop and waits for its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def break_connections(self) -> None:
        """Breaks off all connections; the server's work goes on."""

        def abort() -> None:
            for connection in tuple(self._server.server_state.connections):
                connection.transport.abort()

        self._loop.call_soon_threadsafe(abort)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        setup, self._loop = self._setup, asyncio.get_running_loop()
        limits = setup.limits
        host = ThreadHost(limits)
        self.model, *further = [await host.serve(each) for each in (setup, *setup.further)]
        self.engine = host.engines[0]
        url = setup.store_url
        store = None
        if url is not None:
            vector_limits = SizeLimits(2**30, setup.vector_bytes_per_key)
            store = await open_store(
                url, max_age_s=3600, max_bytes=2**30, vector_limits=vector_limits
            )
        self.catalogue = Catalogue(
            [self.model, *further],
            limits,
            setup.config,
            store,
            response_dialect(setup.config.profile),
            hosted=_add_containers(setup, store),
            prompts=open_prompts(setup.config.prompts),
            max_file_bytes=setup.max_file_bytes,
            containers=setup.containers,
            media=setup.media,
            speech=setup.speech,
        )
        app = build_app(ModelChanges(self.catalogue, host, setup.puller))
        self._server = HttpServer(app, limits)
        serving = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started:
            await asyncio.sleep(0.001)
        self._is_ready.set()
        await serving
        # connections whose clients do not read their answers
        for connection in tuple(self._server.server_state.connections):
            connection.transport.abort()
        if setup.containers is not None:
            await setup.containers.close()
        if store is not None:
            await store.close()
        await host.close()
        for model in (self.model, *further):
            model.renderer.close()


def _add_containers(setup: ServerSetup, store: Store | None) -> HostedKinds:
    """Returns the hosted tools of the setup, with the tools that run code in its containers."""
    if setup.containers is None:
        return setup.hosted
    kinds = (CodeInterpreterKind(setup.containers, store), ShellKind(setup.containers, store))
    return replace(setup.hosted, kinds=(*setup.hosted.kinds, *kinds))


Fields = ParamSpec("Fields")


def _make_runner(
    make_setup: Callable[Fields, ServerSetup],
) -> Callable[Fields, AbstractContextManager[RunningServer]]:
    @contextmanager
    def run(*args: Fields.args, **kwargs: Fields.kwargs) -> Iterator[RunningServer]:
        server = RunningServer(make_setup(*args, **kwargs))
        server.start()
        try:
            yield server
        finally:
            server.stop()

    return run


running_server = _make_runner(ServerSetup)  # has the arguments of ServerSetup
