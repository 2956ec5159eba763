"""The HTTP side of a server: it opens the store and the app, listens and drains."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any  # tasks of any result

from starlette.types import ASGIApp

from ouzel.api.app import build_app, build_probe_app
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.http.server.http_server import HttpServer
from ouzel.api.ovms.responses import response_dialect
from ouzel.engine_client import Engines
from ouzel.generation import ServedModel
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.lifecycle.turns import Limits
from ouzel.model_store.model_directory import LocalModel
from ouzel.options.invalid_option import CannotListen
from ouzel.options.options import Options
from ouzel.responses.templates.library import PromptLibrary
from ouzel.serve.announcement import announce
from ouzel.serve.hosted_kinds import make_hosted_kinds
from ouzel.serve.listener import Listener
from ouzel.serve.metrics_port import serve_metrics_port
from ouzel.serve.model_host import ModelHost
from ouzel.serve.model_puller import ChildPuller
from ouzel.serve.on_demand_models import OnDemandModels
from ouzel.serve.open_containers import open_containers
from ouzel.serve.open_models import CheckedModel
from ouzel.serve.open_speech import OpenSpeech, open_voice_detector
from ouzel.serve.open_store import open_configured_store
from ouzel.serve.prompt_files import open_prompts, reload_prompts
from ouzel.serve.reloading import Reread, reloading
from ouzel.serve.served_model import load_served_model
from ouzel.serve.signals import wait_for_first
from ouzel.serve.start_plan import PlannedModel
from ouzel.store.base import Store
from ouzel.transcription.model_activity import ModelDetector
from ouzel.types.engine_info import EngineInfo

if TYPE_CHECKING:
    from ouzel.observability.traces import Traces

logger = logging.getLogger(__name__)


async def open_frontend(
    options: Options,
    first: "StartingModel | None",
    *,
    host: ModelHost,
    traces: "Traces | None",
) -> "HttpFrontend":
    """Opens the store, and waits for the engine of the first model. Raises OuzelError."""
    containers = await open_containers(options.hosted_tools)
    prompts = await asyncio.to_thread(open_prompts, options.server.prompts)
    detector = await asyncio.to_thread(open_voice_detector, options.audio)
    store = await open_configured_store(options.store)
    try:
        models = [] if first is None else [await _load_first(options, first)]
    except BaseException:
        if store is not None:
            await store.close()
        raise
    return HttpFrontend(
        options,
        models,
        store,
        containers,
        prompts=prompts,
        detector=detector,
        host=host,
        traces=traces,
    )


@dataclass(frozen=True, slots=True)
class StartingModel:
    """A model whose engines are starting."""

    local: LocalModel
    engines: Engines
    starting: asyncio.Task[EngineInfo]


async def _load_first(options: Options, first: StartingModel) -> ServedModel:
    return await load_served_model(options, first.local, first.engines, first.starting)


class HttpFrontend:
    def __init__(
        self,
        options: Options,
        models: Sequence[ServedModel],
        store: Store | None,
        containers: Containers | None,
        *,
        prompts: PromptLibrary,
        detector: ModelDetector | None,
        host: ModelHost,
        traces: "Traces | None",
    ) -> None:
        """`containers` run the code of models; None if the sandbox is off. `detector` finds speech
        in sounds; None: the level of the sound does.
        """
        self._options = options
        self._store = store
        self._containers = containers
        self._prompts = prompts
        self._host = host
        self._traces = traces
        self._speech = OpenSpeech(options.audio, detector)
        catalogue = self._catalogue = Catalogue(
            models,
            options.limits,
            options.server,
            store,
            response_dialect(options.server.profile),
            hosted=make_hosted_kinds(options, store, containers),
            prompts=prompts,
            containers=containers,
            max_file_bytes=options.store.max_file_bytes,
            embedding_model=options.hosted_tools.embedding_model,
            media=options.media,
            speech=self._speech.services,
        )
        puller = ChildPuller(options.model, host.list_directories)
        self._changes = ModelChanges(catalogue, host, puller)
        self._app = build_app(self._changes, None if traces is None else traces.begin_request)
        self._watching_app: ASGIApp = build_probe_app(catalogue)

    @property
    def app(self) -> ASGIApp:
        """Returns the application of the whole API."""
        return self._app

    @property
    def catalogue(self) -> Catalogue:
        """Returns the served models."""
        return self._catalogue

    def add(self, model: ServedModel) -> None:
        """Adds a model. Raises InvalidRequest if one of its names is taken."""
        self._catalogue.add(model)

    async def begin_on_demand(
        self,
        models: Sequence[CheckedModel],
        loaded: Sequence[PlannedModel],
        limits: Limits,
    ) -> None:
        """Lets the models of the options, and of `--models-dir`, come and go from now on."""
        on_demand = OnDemandModels(
            self._options, self._host, self._catalogue, self._changes, limits
        )
        plans = {id(planned.checked): planned for planned in loaded}
        for model in models:
            on_demand.add_checked(model, plans.get(id(model)))
        await on_demand.refresh()
        self._catalogue.set_on_demand(on_demand)

    def serve_metrics_port(self, listener: Listener | None) -> AbstractAsyncContextManager[None]:
        """Serves health checks and metrics on a port of their own, until the drain is over.

        Raises CannotListen.
        """
        return serve_metrics_port(self._watching_app, self._options.limits, listener)

    def reloading(
        self, reread: Reread | None, hangups: asyncio.Event | None
    ) -> AbstractAsyncContextManager[None]:
        """Reloads models and prompts on SIGHUP while the block runs, if files have them."""
        has_prompts = bool(self._options.server.prompts)
        reload_files = partial(reload_prompts, self._prompts) if has_prompts else None
        return reloading(
            self._options, reread, hangups, self._changes, self._host, reload_prompts=reload_files
        )

    async def run(
        self, listener: Listener, *, stopping: asyncio.Event, force_stop: asyncio.Event
    ) -> None:
        """Listens until `stopping` is set, then drains; `force_stop` ends the drain at once."""
        options = self._options
        server = HttpServer(self._app, options.limits, listener.tls)
        serving = asyncio.create_task(server.serve(sockets=[listener.socket]))
        await wait_for_first(serving, asyncio.create_task(server.listening.wait()))
        if serving.done():  # another process took the port while the model loaded
            await server.lifespan.shutdown()
            raise CannotListen(
                f"cannot listen on {listener.address}: it is in use"
            ) from serving.exception()
        if listener.unix is not None and not listener.unix.is_ours():
            server.should_exit = True
            await serving
            raise CannotListen(f"cannot listen on {listener.address}: another server has taken it")
        announce(self._catalogue, listener, options.server)
        await wait_for_first(serving, asyncio.create_task(stopping.wait()))
        forcing = asyncio.create_task(force_stop.wait())
        await self._announce_stop(forcing, serving)
        drain_timeout_s = options.limits.drain_timeout_s
        draining = asyncio.create_task(self._app.drain(drain_timeout_s))
        await wait_for_first(draining, forcing)
        if not draining.done():
            draining.cancel()
            await self._app.drain(0)
        server.should_exit = True
        await wait_for_first(serving, forcing)
        server.force_exit = True
        await serving
        if forcing.done():
            await server.lifespan.shutdown()  # uvicorn skips it after a forced exit

    async def _announce_stop(self, *ends: asyncio.Task[Any]) -> None:
        """Answers health checks with 503 for `drain_grace_s`, while requests are still taken.

        Load balancers learn in this time to send no more requests.
        """
        grace_s = self._options.limits.drain_grace_s
        if grace_s:
            logger.info(
                "stopping: health checks answer 503, requests are taken for %.0f s more",
                grace_s,
            )
            self._catalogue.leave()
            await wait_for_first(*ends, asyncio.create_task(asyncio.sleep(grace_s)))

    async def close(self) -> None:
        """Closes the store and sends the last traces.

        The engines must be closed before, because their last results are stored.
        """
        for served in self._catalogue.bases:
            await asyncio.to_thread(served.model.renderer.close)
        await asyncio.to_thread(self._speech.close)
        if self._containers is not None:
            await self._containers.close()
        if self._store is not None:
            await self._store.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)
