"""The engine's own thread takes commands, steps while there is work, and tells what happened."""

import logging
from collections.abc import Callable
from importlib import import_module
from queue import Empty, SimpleQueue

import msgspec

from ouzel.engine.base import Engine
from ouzel.engine.heart import Heart
from ouzel.errors import STOPS, OuzelError
from ouzel.observability import LogFormat
from ouzel.observability.progress import progress_told_to
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
    """It says how to make an engine in another process: an import path, and plain data for it."""

    factory: str  # "package.module:function"; called with `options`, returns an Engine
    options: dict[str, object]
    python: str = ""  # the interpreter of its process; the server's own where it is empty
    log_level: str = "info"
    heartbeat_every_s: float = 1.0
    log_format: LogFormat = "text"
    processors: tuple[int, ...] = ()  # that its process may use; none: all
    label: str = ""  # by which people tell it from others in the log


def load_engine(spec: EngineSpec) -> Engine:
    module_name, _, function_name = spec.factory.partition(":")
    engine: Engine = getattr(import_module(module_name), function_name)(spec.options)
    return engine


def drive_engine(spec: EngineSpec, inbox: Inbox, emit: Callable[[EngineEvent], None]) -> None:
    """Runs one engine from loading to Shutdown. Whatever goes wrong leaves as `EngineDown`, never as an exception."""

    try:
        with progress_told_to(lambda progress: emit(EngineLoading(progress))):
            engine = load_engine(spec)
    except OuzelError as error:
        emit(EngineDown(str(error)))
        return
    except STOPS:
        raise
    except BaseException as error:  # the engine loop's one broad except: loading and stepping
        logger.exception("the engine could not start")
        emit(EngineDown(f"the engine could not start: {error}"))
        return
    emit(EngineReady(engine.info))
    heart = Heart(emit, every_s=spec.heartbeat_every_s)
    heart.start()
    try:
        _step_until_shutdown(engine, heart, inbox, emit)
    except STOPS:
        raise
    except BaseException as error:
        logger.exception("the engine failed")
        emit(EngineDown(f"the engine failed: {error}"))
    finally:
        engine.close()
        heart.stop()


def _step_until_shutdown(
    engine: Engine, heart: Heart, inbox: Inbox, emit: Callable[[EngineEvent], None]
) -> None:
    while True:
        is_idle = not engine.has_unfinished() and not (inbox.empty() and engine.use_idle_time())
        commands = _receive(inbox, wait=is_idle)
        heart.begin_turn()
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
        heart.end_turn()


def _receive(inbox: Inbox, *, wait: bool) -> list[EngineCommand]:
    """Returns everything that has arrived; with `wait` at least one message."""
    commands = inbox.get() if wait else []
    while True:
        try:
            commands = commands + inbox.get_nowait()
        except Empty:
            return commands
