"""`ouzel serve` starts the engine, opens what answers for it, on SIGTERM or SIGINT drains and leaves with status 0.

The model loads in the engine's process while this one imports the other half of the program and reads the tokenizer and
the chat template. The address is taken before that (`listener.py`).
"""

import asyncio
import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ouzel.observability.progress_bar import progress_bar
from ouzel.options.options import Options
from ouzel.serve.listener import Listener
from ouzel.serve.model_host import ModelHost
from ouzel.serve.open_models import CheckedModel
from ouzel.serve.signals import first_of, hangup_signals, stop_signals
from ouzel.types.engine_info import EngineInfo

if TYPE_CHECKING:
    from ouzel.observability.traces import Traces
    from ouzel.serve.http_frontend import HttpFrontend
    from ouzel.serve.reloading import Reread

_GC_THRESHOLDS = (
    50_000,
    20,
    20,
)  # each time, all objects of thousands of connections may be looked at


async def serve(
    options: Options,
    models: Sequence[CheckedModel],
    listener: Listener,
    watching: Listener | None,
    *,
    traces: "Traces | None",
    reread: "Reread | None" = None,
) -> None:
    """Serves until told to stop; `models` are those of `options.all_models`.

    `reread` reads the options again, where there is a file of them. Raises OuzelError when it cannot start.
    """
    stopping, force_stop = stop_signals()
    hangups = (
        None if reread is None else hangup_signals()
    )  # from now on: one that comes during the start is kept
    host = ModelHost(options)
    front: HttpFrontend | None = None
    try:
        opening = asyncio.create_task(open_frontend_for(options, models, host, traces))
        await first_of(opening, asyncio.create_task(stopping.wait()))
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
    """Starts the first model's engine, and opens what answers meanwhile; then come the others. Raises OuzelError."""
    first, *others = models
    with progress_bar(is_wanted=options.observability.log_format == "text"):
        engines = host.make_engines(first)
        starting: asyncio.Task[EngineInfo] = asyncio.create_task(engines.start())
        try:
            await asyncio.to_thread(_import_front)
            from ouzel.serve.http_frontend import open_frontend  # noqa: PLC0415  imported by now

            front = await open_frontend(
                options, first.local, engines, starting, host=host, traces=traces
            )
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
        try:
            for model in others:
                front.add(await host.serve(model))
            front.catalogue.arrange(front.catalogue.names)
        except BaseException:
            await front.close()
            raise
    return front


def settle_memory() -> None:
    """Keeps what is loaded, modules and the tokenizer, out of the way of collections.

    Going through all of it again would stop the event loop for 25 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _import_front() -> None:
    """Takes most of a second, so the engine's process starts first."""
    import ouzel.serve.http_frontend  # noqa: F401, PLC0415
