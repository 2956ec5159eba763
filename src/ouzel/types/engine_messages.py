"""Defines the messages between the server and an engine in a process of its own.

Each step sends at most one list of commands to the engine and one StepResult back. Heartbeats are
sent independently.
"""

import msgspec

from ouzel.observability.progress import Progress
from ouzel.types.engine_info import EngineInfo, EngineStats
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput


class AddRequest(msgspec.Struct, frozen=True, tag="add", array_like=True):
    request: EngineRequest


class AbortRequest(msgspec.Struct, frozen=True, tag="abort", array_like=True):
    """Ends one choice, or all if index is None; unknown or finished ids are no error."""

    request_id: str
    index: int | None = None


class LoadAdapter(msgspec.Struct, frozen=True, tag="load_adapter", array_like=True):
    """Loads an adapter beside the requests; answered by one AdapterLoaded or AdapterFailed."""

    name: str  # name for requests
    path: str  # path of the directory, written by PEFT


class UnloadAdapter(msgspec.Struct, frozen=True, tag="unload_adapter", array_like=True):
    """Refuses the name for new requests; answered by one AdapterUnloaded, also for an unknown name.

    Requests that use the name already run to their ends; then the engine frees the memory.
    """

    name: str


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown", array_like=True):
    """Closes the engine and ends its process; unfinished requests are aborted."""


EngineCommand = AddRequest | AbortRequest | LoadAdapter | UnloadAdapter | Shutdown


class EngineLoading(msgspec.Struct, frozen=True, tag="loading", array_like=True):
    """Reports progress from time to time while the engine loads."""

    progress: Progress


class EngineReady(msgspec.Struct, frozen=True, tag="ready", array_like=True):
    info: EngineInfo


class StepResult(msgspec.Struct, frozen=True, tag="step", array_like=True):
    outputs: list[StepOutput]
    stats: EngineStats


class AdapterLoaded(msgspec.Struct, frozen=True, tag="adapter_loaded", array_like=True):
    """Sent when requests may use the name of an adapter."""

    name: str


class AdapterFailed(msgspec.Struct, frozen=True, tag="adapter_failed", array_like=True):
    """Sent when an adapter was not loaded; an adapter that had the name before stays."""

    name: str
    message: str


class AdapterUnloaded(msgspec.Struct, frozen=True, tag="adapter_unloaded", array_like=True):
    """Sent when the memory of an adapter is freed."""

    name: str


AdapterEvent = AdapterLoaded | AdapterFailed | AdapterUnloaded


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat", array_like=True):
    """Sent from time to time by a ready engine, as a sign that it is alive."""

    step_age_s: float  # a lower bound of the present step's duration; 0 without a step


class EngineDown(msgspec.Struct, frozen=True, tag="down", array_like=True):
    """Sent when an engine cannot start or continue; its last message."""

    message: str


EngineEvent = EngineLoading | EngineReady | StepResult | AdapterEvent | Heartbeat | EngineDown
