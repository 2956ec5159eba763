"""An engine is in one of these states, as all who ask it see it."""

import asyncio
import logging
from enum import StrEnum

logger = logging.getLogger(__name__)

SHUTTING_DOWN, STOPPED = (
    "the server is shutting down",
    "the server is stopped",
)  # why engines go, mostly


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    LEAVING = "leaving"  # as ready, but nobody should send more: the server is about to stop
    DRAINING = "draining"
    FAILED = "failed"
    CLOSED = "closed"


class EngineStatus:
    """Knows the state, the reason for it, and wakes those that wait for a change of it."""

    def __init__(self, label: str = "") -> None:
        """People know the engine by its `label`."""
        self.name = f"engine {label}" if label else "engine"
        self.state = EngineState.STARTING
        self.reason = "the engine is loading the model"
        self._is_leaving = False
        self._has_been_ready = False
        self._changed = asyncio.Event()  # set, and replaced, at every change

    def enter(self, state: EngineState, reason: str) -> None:
        if state is EngineState.READY:
            self._has_been_ready = True
            if self._is_leaving:
                state, reason = EngineState.LEAVING, "the server is about to stop"
        if (
            state is not EngineState.FAILED or self._has_been_ready
        ):  # of one never ready `start` raises the reason
            logger.info("%s %s: %s", self.name, state, reason)
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = asyncio.Event()

    def leave(self) -> None:
        """Makes LEAVING of READY from now on."""
        self._is_leaving = True
        if self.state is EngineState.READY:
            self.enter(EngineState.READY, self.reason)

    async def change(self) -> None:
        await self._changed.wait()
