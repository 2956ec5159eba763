"""Detects engines that hang.

Rules
1. A ready engine sends heartbeats from a thread of its own. If none comes for `silence_timeout_s`,
   the process is stopped or native code holds the GIL.
2. A heartbeat has the age of the present step; an age over `step_timeout_s` is a hang. Loading is
   no step.
3. Both times grow by at most two intervals between two heartbeats, or two looks: a suspended
   machine or a blocked event loop does not count.
"""

import asyncio
import time
from collections.abc import Coroutine

from ouzel.types.engine_messages import Heartbeat

_SILENCE_TIMEOUT_S = 30.0


class HangWatch:
    """Watches the heartbeats of one engine."""

    def __init__(self, *, heartbeat_every_s: float, step_timeout_s: float) -> None:
        self._heartbeat_every_s = heartbeat_every_s
        self._step_timeout_s = step_timeout_s
        self._silence_timeout_s = min(_SILENCE_TIMEOUT_S, step_timeout_s)
        self._is_ready = False
        self._has_heard = False  # an event came since the last look
        self.step_age_s = 0.0  # age of the present step

    def begin(self) -> None:
        """Notes that the engine is ready: from now on heartbeats must come."""
        self._is_ready = True

    def note_event(self) -> None:
        """Notes an event of the engine."""
        self._has_heard = True

    def read_heartbeat(self, heartbeat: Heartbeat) -> None:
        self.step_age_s = heartbeat.step_age_s

    async def guard(self, reading: Coroutine[None, None, str], remedy: str) -> str:
        """Returns the result of `reading`, or a description of the hang if the engine hangs
        first.
        """
        reader, hang = asyncio.create_task(reading), asyncio.create_task(self._hang())
        try:
            await asyncio.wait((reader, hang), return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                return reader.result()
            return f"the engine hangs ({hang.result()}); {remedy}"
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
            if is_silent:
                silent_s += min(looked_at - last_look, 2 * self._heartbeat_every_s)
            else:
                silent_s = 0.0
            self._has_heard = False
            if silent_s >= self._silence_timeout_s:
                return f"no message from it for {silent_s:.0f} s"
            if self.step_age_s > self._step_timeout_s:
                return (
                    f"a step has taken {self.step_age_s:.0f} s, the limit is "
                    f"{self._step_timeout_s:g} s"
                )
