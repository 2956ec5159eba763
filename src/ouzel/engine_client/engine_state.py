"""Defines the states of an engine, and waits for their changes."""

import asyncio
import logging
from enum import StrEnum

logger = logging.getLogger(__name__)

# reasons why engines end
SHUTTING_DOWN = "the server is shutting down"
STOPPED = "the server is stopped"


class EngineState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    LEAVING = "leaving"  # ready, but the server is about to stop and asks for no more requests
    DRAINING = "draining"
    FAILED = "failed"
    CLOSED = "closed"


class EngineStatus:
    """The state of an engine and its reason; wakes tasks that wait for a change."""

    def __init__(self, label: str = "") -> None:
        """`label` names the engine in logs and messages."""
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
        # `start` raises the reason of an engine that was never ready.
        if state is not EngineState.FAILED or self._has_been_ready:
            logger.info("%s %s: %s", self.name, state, reason)
        self.state, self.reason = state, reason
        self._changed.set()
        self._changed = asyncio.Event()

    def leave(self) -> None:
        """Enters LEAVING, now or when the engine becomes ready."""
        self._is_leaving = True
        if self.state is EngineState.READY:
            self.enter(EngineState.READY, self.reason)

    async def change(self) -> None:
        await self._changed.wait()
