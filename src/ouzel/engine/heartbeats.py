"""Emits heartbeats while the engine is ready, with the age of the engine's present turn."""

import threading
import time
from collections.abc import Callable

from ouzel.types.engine_messages import Heartbeat


class HeartbeatSender:
    """Sends heartbeats from a thread of its own.

    A turn is the engine's work between two looks at its inbox: commands and a step. Between two
    heartbeats the age of a turn grows by at most two intervals, so that a suspended machine does
    not count.
    """

    def __init__(self, emit: Callable[[Heartbeat], None], *, every_s: float) -> None:
        self._emit = emit
        self._every_s = every_s
        self._num_turns = 0
        # number of the present turn; None while the engine waits for commands
        self._turn: int | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread. Nothing is emitted after the return."""
        self._is_over.set()
        self._thread.join()

    def begin_turn(self) -> None:
        self._num_turns += 1
        self._turn = self._num_turns

    def end_turn(self) -> None:
        self._turn = None

    def _beat(self) -> None:
        last_turn, last_beat, step_age_s = None, time.monotonic(), 0.0
        while not self._is_over.wait(self._every_s):
            turn, now = self._turn, time.monotonic()
            grown_s = min(now - last_beat, 2 * self._every_s)
            step_age_s = step_age_s + grown_s if turn is not None and turn == last_turn else 0.0
            last_turn, last_beat = turn, now
            self._emit(Heartbeat(step_age_s))
