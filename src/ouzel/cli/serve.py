"""`ouzel serve` starts the engine, opens what answers for it, on SIGTERM or SIGINT drains and leaves with status 0.

The model loads in the engine's process while this one imports the other half of the program and reads the tokenizer and
the chat template. The address is taken before that (`listener.py`).
"""

import asyncio
import gc
from typing import TYPE_CHECKING

import msgspec

from ouzel.cli.listener import Listener
from ouzel.cli.model_directory import LocalModel
from ouzel.cli.options import Options
from ouzel.cli.signals import first_of, stop_signals
from ouzel.engine_client import EngineClient, Engines, EngineSpec
from ouzel.observability.progress_bar import progress_bar
from ouzel.types import EngineInfo

if TYPE_CHECKING:
    from ouzel.cli.front import Front
    from ouzel.observability.traces import Traces

_GC_THRESHOLDS = (50_000, 20, 20)  # each time, all objects of thousands of connections may be looked at


async def serve(
    options: Options, local: LocalModel, listener: Listener, watching: Listener | None, traces: "Traces | None"
) -> None:
    """Serves until told to stop. Raises OuzelError when it cannot start."""
    stopping, hurrying = stop_signals()
    engine = engine_client(options, local)
    front: Front | None = None
    try:
        opening = asyncio.create_task(front_for(options, local, engine, traces))
        await first_of(opening, asyncio.create_task(stopping.wait()))
        if stopping.is_set():
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)
            return
        front = opening.result()
        gc.collect()
        gc.freeze()  # modules and the tokenizer stay: going through them again would stop the event loop for 25 ms
        gc.set_threshold(*_GC_THRESHOLDS)
        async with front.watched(watching):
            await front.run(listener, stopping=stopping, hurrying=hurrying)
    finally:
        await engine.close()
        if front is not None:
            await front.close()


def engine_client(options: Options, local: LocalModel) -> EngineClient:
    """Returns the engine before its start; whoever asks for it closes it."""
    start_link = None
    if options.vllm.engine_url:
        from ouzel.cli.vllm_engine import link_to_server  # noqa: PLC0415  seldom needed

        start_link = link_to_server(options, local)
    return EngineClient(
        engine_spec(options, local),
        in_thread=not options.engine.engine_process,
        start_link=start_link,
        max_queued_requests=options.limits.max_queued_requests,
        step_timeout_s=options.engine.step_timeout_s,
    )


def engine_spec(options: Options, local: LocalModel) -> EngineSpec:
    """Names the factory rather than importing it: only the engine's process loads OpenVINO, or vLLM."""
    if options.vllm.is_chosen:
        from ouzel.cli.vllm_engine import child_spec  # noqa: PLC0415  seldom needed

        return child_spec(options, local)
    draft = "" if local.draft is None else str(local.draft)
    model = msgspec.structs.replace(options.model, model=str(local.directory), draft_model=draft)
    return EngineSpec(
        factory="ouzel.cli.engines:openvino_engine",
        options={"model": msgspec.to_builtins(model), "engine": msgspec.to_builtins(options.engine)},
        log_level=options.observability.log_level,
        log_format=options.observability.log_format,
    )


async def front_for(options: Options, local: LocalModel, engine: Engines, traces: "Traces | None") -> "Front":
    """Starts the engine, and opens what answers for it meanwhile. Raises OuzelError."""
    with progress_bar(is_wanted=options.observability.log_format == "text"):
        starting: asyncio.Task[EngineInfo] = asyncio.create_task(engine.start())
        try:
            await asyncio.to_thread(_import_front)
            from ouzel.cli.front import open_front  # noqa: PLC0415  imported by now

            return await open_front(options, local, engine, starting, traces)
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)


def _import_front() -> None:
    """Takes most of a second, so the engine's process starts first."""
    import ouzel.cli.front  # noqa: F401, PLC0415
