"""Messages between the server and an engine in a process of its own.

Each step sends at most one list of commands to the engine, and one StepResult from it. Heartbeats come besides.
"""

import msgspec

from ouzel.observability.progress import Progress
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput


class AddRequest(msgspec.Struct, frozen=True, tag="add", array_like=True):
    request: EngineRequest


class AbortRequest(msgspec.Struct, frozen=True, tag="abort", array_like=True):
    """Ends one choice, or with index None all of them; unknown or finished ids are no error."""

    request_id: str
    index: int | None = None


class LoadAdapter(msgspec.Struct, frozen=True, tag="load_adapter", array_like=True):
    """Is answered by one AdapterLoaded or AdapterFailed, once its files are read; requests go on meanwhile."""

    name: str  # that requests will use
    path: str  # of the directory, which PEFT has written


class UnloadAdapter(msgspec.Struct, frozen=True, tag="unload_adapter", array_like=True):
    """No new request may use the name.

    One AdapterUnloaded is the answer, also for an unknown name. Requests that use the name already go on to their ends;
    then the engine gives the memory back.
    """

    name: str


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown", array_like=True):
    """Closes the engine and ends it; unfinished requests are aborted."""


EngineCommand = AddRequest | AbortRequest | LoadAdapter | UnloadAdapter | Shutdown


class EngineLoading(msgspec.Struct, frozen=True, tag="loading", array_like=True):
    """An engine that is not ready yet sends it every so often."""

    progress: Progress


class EngineReady(msgspec.Struct, frozen=True, tag="ready", array_like=True):
    info: EngineInfo


class StepResult(msgspec.Struct, frozen=True, tag="step", array_like=True):
    outputs: list[StepOutput]
    stats: EngineStats


class AdapterLoaded(msgspec.Struct, frozen=True, tag="adapter_loaded", array_like=True):
    """Requests may use the name now."""

    name: str


class AdapterFailed(msgspec.Struct, frozen=True, tag="adapter_failed", array_like=True):
    """It was not loaded; what was loaded under this name before, still is."""

    name: str
    message: str


class AdapterUnloaded(msgspec.Struct, frozen=True, tag="adapter_unloaded", array_like=True):
    """Its memory is given back, and its place is free."""

    name: str


AdapterEvent = AdapterLoaded | AdapterFailed | AdapterUnloaded


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat", array_like=True):
    """A ready engine sends it every so often, whatever it does otherwise."""

    step_age_s: float  # how long the present step has run at least; 0 while there is none


class EngineDown(msgspec.Struct, frozen=True, tag="down", array_like=True):
    """An engine that could not start or go on sends this and nothing more."""

    message: str


EngineEvent = EngineLoading | EngineReady | StepResult | AdapterEvent | Heartbeat | EngineDown
