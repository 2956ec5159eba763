"""Runs a server: starts the engines, opens the HTTP frontend, and drains on SIGTERM or SIGINT.

The model loads in the engine's process while this process imports the frontend and reads the
tokenizer and the chat template. The address is bound before that (`listener.py`).
"""

import asyncio
import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ouzel.observability.progress_bar import progress_bar
from ouzel.options.options import Options
from ouzel.serve.listener import Listener
from ouzel.serve.model_host import ModelHost
from ouzel.serve.on_demand_limits import read_limits
from ouzel.serve.open_models import CheckedModel
from ouzel.serve.signals import hangup_signals, stop_signals, wait_for_first
from ouzel.serve.start_plan import PlannedModel, plan_start
from ouzel.types.engine_info import EngineInfo

if TYPE_CHECKING:
    from ouzel.observability.traces import Traces
    from ouzel.serve.http_frontend import HttpFrontend
    from ouzel.serve.reloading import Reread

# A full collection looks at all objects of thousands of connections, so it must be rare.
_GC_THRESHOLDS = (50_000, 20, 20)


async def serve(
    options: Options,
    models: Sequence[CheckedModel],
    listener: Listener,
    watching: Listener | None,
    *,
    traces: "Traces | None",
    reread: "Reread | None" = None,
) -> None:
    """Serves the models until a signal stops the server.

    `reread` reads the options again; it is None without a file of options. Raises OuzelError if the
    server cannot start.
    """
    stopping, force_stop = stop_signals()
    # A SIGHUP during the start is handled after it.
    has_files = reread is not None or options.server.prompts
    hangups = hangup_signals() if has_files else None
    host = ModelHost(options)
    front: HttpFrontend | None = None
    try:
        opening = asyncio.create_task(open_frontend_for(options, models, host, traces))
        await wait_for_first(opening, asyncio.create_task(stopping.wait()))
        if stopping.is_set():
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return
        front = opening.result()
        settle_memory()
        async with front.serve_metrics_port(watching), front.reloading(reread, hangups):
            await front.run(listener, stopping=stopping, force_stop=force_stop)
    finally:
        await host.close()
        if front is not None:
            await front.close()


async def open_frontend_for(
    options: Options, models: Sequence[CheckedModel], host: ModelHost, traces: "Traces | None"
) -> "HttpFrontend":
    """Starts the engine of the first model and opens the frontend; then loads the other models.

    Models that come and go are loaded as far as their limits allow. Raises OuzelError.
    """
    limits = read_limits(options)  # before any model takes memory
    loaded = await plan_start(options, models, limits)
    host.expect([model.checked for model in loaded])
    with progress_bar(is_wanted=options.observability.log_format == "text"):
        front = await _open_frontend(options, loaded[0] if loaded else None, host, traces)
        try:
            for model in loaded[1:]:
                front.add(await host.serve(model.checked, model.share_bytes))
            front.catalogue.arrange([name for model in models for name in model.names])
            if options.loads_on_request:
                await front.begin_on_demand(models, loaded, limits)
        except BaseException:
            await front.close()
            raise
    return front


async def _open_frontend(
    options: Options, first: PlannedModel | None, host: ModelHost, traces: "Traces | None"
) -> "HttpFrontend":
    engines = None
    starting: asyncio.Task[EngineInfo] | None = None
    if first is not None:
        engines = host.make_engines(first.checked, first.share_bytes)
        starting = asyncio.create_task(engines.start())
    try:
        await asyncio.to_thread(_import_front)
        from ouzel.serve.http_frontend import (  # noqa: PLC0415  imported by now
            StartingModel,
            open_frontend,
        )

        starting_model = None
        if first is not None and engines is not None and starting is not None:
            starting_model = StartingModel(first.checked.local, engines, starting)
        return await open_frontend(options, starting_model, host=host, traces=traces)
    finally:
        if starting is not None:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)


def settle_memory() -> None:
    """Exempts the loaded modules and models from garbage collection.

    A collection of all these objects would stop the event loop for 25 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _import_front() -> None:
    """Imports the frontend, which takes almost 1 s, while the engine's process starts."""
    import ouzel.serve.http_frontend  # noqa: F401, PLC0415
