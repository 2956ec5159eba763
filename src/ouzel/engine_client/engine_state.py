"""An engine is in one of these states, as all who ask it see it."""

from enum import StrEnum


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    DRAINING = "draining"
    FAILED = "failed"
    CLOSED = "closed"
