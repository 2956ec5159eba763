"""Defines the states of a model, and all transitions between them in one table."""

from enum import Enum, auto
from types import MappingProxyType


class ModelState(Enum):
    """The state of a model; the value is its name for clients."""

    ABSENT = "absent"  # its files are not on this disk
    ON_DISK = "on_disk"
    LOADING = "loading"
    READY = "ready"  # loaded, with open requests
    IDLE = "idle"  # loaded, without open requests
    UNLOADING = "unloading"
    FAILED = "failed"  # its last load failed

    @property
    def is_loaded(self) -> bool:
        """Tells whether the model is in memory and takes requests."""
        return self in (ModelState.READY, ModelState.IDLE)


class Event(Enum):
    """Changes the state of a model."""

    FILES_FOUND = auto()
    FILES_GONE = auto()
    LOAD = auto()  # a load begins
    LOADED = auto()
    LOAD_FAILED = auto()
    FIRST_REQUEST = auto()  # a request begins, and none was open
    LAST_REQUEST_ENDED = auto()
    UNLOAD = auto()  # an unload begins
    UNLOADED = auto()


class ImpossibleEvent(Exception):
    """Raised for an event that the state of a model does not allow: a fault of this program."""


_S, _E = ModelState, Event
TRANSITIONS = MappingProxyType(
    {
        (_S.ABSENT, _E.FILES_FOUND): _S.ON_DISK,
        (_S.ON_DISK, _E.FILES_GONE): _S.ABSENT,
        (_S.FAILED, _E.FILES_GONE): _S.ABSENT,
        (_S.LOADING, _E.FILES_GONE): _S.ABSENT,
        (_S.ON_DISK, _E.LOAD): _S.LOADING,
        (_S.FAILED, _E.LOAD): _S.LOADING,
        (_S.LOADING, _E.LOADED): _S.IDLE,
        (_S.LOADING, _E.LOAD_FAILED): _S.FAILED,
        (_S.IDLE, _E.FIRST_REQUEST): _S.READY,
        (_S.READY, _E.LAST_REQUEST_ENDED): _S.IDLE,
        (_S.IDLE, _E.UNLOAD): _S.UNLOADING,
        (_S.UNLOADING, _E.UNLOADED): _S.ON_DISK,
    }
)


def next_state(state: ModelState, event: Event) -> ModelState:
    """Returns the state behind an event. Raises ImpossibleEvent."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ImpossibleEvent(f"{event.name} in state {state.value}") from None
