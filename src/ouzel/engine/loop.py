"""Runs an engine in a thread: reads commands, steps while there is work, emits events."""

import logging
from collections.abc import Callable
from importlib import import_module
from queue import Empty, SimpleQueue

import msgspec

from ouzel.engine.base import Engine
from ouzel.engine.heartbeats import HeartbeatSender
from ouzel.errors import STOPS, OuzelError
from ouzel.observability import LogFormat
from ouzel.observability.progress import listen_to_progress
from ouzel.types.engine_messages import (
    AbortRequest,
    AddRequest,
    EngineCommand,
    EngineDown,
    EngineEvent,
    EngineLoading,
    EngineReady,
    LoadAdapter,
    Shutdown,
    StepResult,
    UnloadAdapter,
)

logger = logging.getLogger(__name__)

Inbox = SimpleQueue[list[EngineCommand]]


class EngineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The data that makes an engine in another process: an import path and plain options."""

    factory: str  # "package.module:function"; called with `options`, returns an Engine
    options: dict[str, object]
    python: str = ""  # path of the interpreter of the engine's process; empty: the server's own
    log_level: str = "info"
    heartbeat_every_s: float = 1.0
    log_format: LogFormat = "text"
    processors: tuple[int, ...] = ()  # processors that the engine's process may use; none: all
    # added to the niceness of the engine's process: above 0 it leaves processors to other engines
    niceness: int = 0
    label: str = ""  # name of the engine in the log, where there are several


def load_engine(spec: EngineSpec) -> Engine:
    module_name, _, function_name = spec.factory.partition(":")
    engine: Engine = getattr(import_module(module_name), function_name)(spec.options)
    return engine


def drive_engine(spec: EngineSpec, inbox: Inbox, emit: Callable[[EngineEvent], None]) -> None:
    """Runs one engine from loading to `Shutdown`; reports failures as `EngineDown`."""
    try:
        with listen_to_progress(lambda progress: emit(EngineLoading(progress))):
            engine = load_engine(spec)
    except OuzelError as error:
        emit(EngineDown(str(error)))
        return
    except STOPS:
        raise
    # with the one below, the only broad except of the loop: loading and stepping
    except BaseException as error:
        logger.exception("the engine could not start")
        emit(EngineDown(f"the engine could not start: {error}"))
        return
    emit(EngineReady(engine.info))
    heartbeats = HeartbeatSender(emit, every_s=spec.heartbeat_every_s)
    heartbeats.start()
    try:
        _step_until_shutdown(engine, heartbeats, inbox, emit)
    except STOPS:
        raise
    except BaseException as error:
        logger.exception("the engine failed")
        emit(EngineDown(f"the engine failed: {error}"))
    finally:
        engine.close()
        heartbeats.stop()


def _step_until_shutdown(
    engine: Engine, heartbeats: HeartbeatSender, inbox: Inbox, emit: Callable[[EngineEvent], None]
) -> None:
    while True:
        is_idle = not engine.has_unfinished() and not (inbox.empty() and engine.use_idle_time())
        commands = _receive(inbox, wait=is_idle)
        heartbeats.begin_turn()
        for command in commands:
            match command:
                case AddRequest(request):
                    engine.add(request)
                case AbortRequest(request_id, index):
                    engine.abort(request_id, index)
                case LoadAdapter(name, path):
                    engine.adapters.load(name, path)
                case UnloadAdapter(name):
                    engine.adapters.unload(name)
                case Shutdown():
                    return
        if engine.has_unfinished():
            outputs = engine.step()
            emit(StepResult(outputs, engine.stats()))
        for event in engine.adapters.take_events():
            emit(event)
        heartbeats.end_turn()


def _receive(inbox: Inbox, *, wait: bool) -> list[EngineCommand]:
    """Returns all commands that have arrived; with `wait`, waits for the first one."""
    commands = inbox.get() if wait else []
    while True:
        try:
            commands = commands + inbox.get_nowait()
        except Empty:
            return commands
