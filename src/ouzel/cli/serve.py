"""`ouzel serve` starts the engine, opens what answers for it, on SIGTERM or SIGINT drains and leaves with status 0.

The model loads in the engine's process while this one imports the other half of the program and reads the tokenizer and
the chat template. The address is taken before that (`listener.py`).
"""

import asyncio
import gc
import os
from typing import TYPE_CHECKING

import msgspec

from ouzel.cli.listener import Listener
from ouzel.cli.model_directory import LocalModel
from ouzel.cli.options import Options
from ouzel.cli.processors import shares_of_processors
from ouzel.cli.signals import first_of, stop_signals
from ouzel.config import EngineConfig
from ouzel.engine_client import EngineClient, EnginePool, Engines, EngineSpec
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
    engine = engines_of(options, local)
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


def engines_of(options: Options, local: LocalModel) -> Engines:
    """Returns the engine, or several, before their start; whoever asks for them closes them."""
    max_queued_requests = options.limits.max_queued_requests
    members = [
        EngineClient(
            spec,
            in_thread=not options.engine.engine_process,
            max_queued_requests=max_queued_requests,
            step_timeout_s=options.engine.step_timeout_s,
        )
        for spec in engine_specs(options, local)
    ]
    return members[0] if len(members) == 1 else EnginePool(members, max_queued_requests=max_queued_requests)


def engine_specs(options: Options, local: LocalModel) -> list[EngineSpec]:
    num_replicas = options.engine.replicas
    if num_replicas == 1:
        return [engine_spec(options, local, options.engine)]
    return [
        engine_spec(options, local, replica_config(options.engine, number), processors=processors)
        for number, processors in enumerate(shares_of_processors(num_replicas))
    ]


def replica_config(engine: EngineConfig, number: int) -> EngineConfig:
    """Divides what several engines cannot have in common: a directory is written by one of them."""
    if not engine.prefix_cache_dir:
        return engine
    return msgspec.structs.replace(
        engine,
        prefix_cache_dir=os.path.join(engine.prefix_cache_dir, f"replica-{number}"),
        prefix_cache_dir_gib=engine.prefix_cache_dir_gib / engine.replicas,
    )


def engine_spec(
    options: Options, local: LocalModel, engine: EngineConfig, *, processors: tuple[int, ...] = ()
) -> EngineSpec:
    """Names the factory rather than importing it: only the engine's process loads OpenVINO."""
    draft = "" if local.draft is None else str(local.draft)
    model = msgspec.structs.replace(options.model, model=str(local.directory), draft_model=draft)
    return EngineSpec(
        factory="ouzel.cli.engines:openvino_engine",
        options={
            "model": msgspec.to_builtins(model),
            "engine": msgspec.to_builtins(engine),
            "memory_share": 1 / engine.replicas,
        },
        log_level=options.observability.log_level,
        log_format=options.observability.log_format,
        processors=processors,
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
