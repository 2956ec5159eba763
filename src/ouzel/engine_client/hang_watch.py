"""A watch tells an engine that hangs from one that computes.

Rules
1. A ready engine sends a heartbeat every so often, from a thread of its own. One from which nothing comes for
   `silence_timeout_s` is stopped, or native code keeps its interpreter.
2. A heartbeat says for how long the present step has run; one over `step_timeout_s` hangs. Loading is no step.
3. Both times grow by two intervals at most between two heartbeats, or two looks: a machine that slept, or an event
   loop that was blocked, is not held against the engine.
"""

import asyncio
import time
from collections.abc import Coroutine

from ouzel.types.engine_messages import Heartbeat

_SILENCE_TIMEOUT_S = 30.0


class HangWatch:
    def __init__(self, *, heartbeat_every_s: float, step_timeout_s: float) -> None:
        self._heartbeat_every_s = heartbeat_every_s
        self._step_timeout_s = step_timeout_s
        self._silence_timeout_s = min(_SILENCE_TIMEOUT_S, step_timeout_s)
        self._is_ready = False
        self._has_heard = False  # anything of the engine since the last look
        self.step_age_s = 0.0  # of the step that runs

    def begin(self) -> None:
        """Notes that the engine is ready: from now on it has to beat."""
        self._is_ready = True

    def hear(self) -> None:
        """Notes that the engine said something."""
        self._has_heard = True

    def feel(self, heartbeat: Heartbeat) -> None:
        self.step_age_s = heartbeat.step_age_s

    async def guard(self, reading: Coroutine[None, None, str], remedy: str) -> str:
        """Returns what `reading` an engine's events comes to; or, when that engine hangs, how that shows."""
        reader, hang = asyncio.create_task(reading), asyncio.create_task(self._hang())
        try:
            await asyncio.wait((reader, hang), return_when=asyncio.FIRST_COMPLETED)
            return (
                reader.result()
                if reader.done()
                else f"the engine hangs ({hang.result()}); {remedy}"
            )
        finally:
            reader.cancel()
            hang.cancel()

    async def _hang(self) -> str:
        self._is_ready = False
        self.step_age_s = silent_s = 0.0
        looked_at = time.monotonic()
        while True:
            await asyncio.sleep(self._heartbeat_every_s)
            last_look, looked_at = looked_at, time.monotonic()
            is_silent = self._is_ready and not self._has_heard
            silent_s = (
                silent_s + min(looked_at - last_look, 2 * self._heartbeat_every_s)
                if is_silent
                else 0.0
            )
            self._has_heard = False
            if silent_s >= self._silence_timeout_s:
                return f"nothing has come from it for {silent_s:.0f} s"
            if self.step_age_s > self._step_timeout_s:
                return f"a step has taken {self.step_age_s:.0f} s, the limit is {self._step_timeout_s:g} s"
