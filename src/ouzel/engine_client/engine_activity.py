"""Follows the events of an engine, so that the message about its sudden end can name its last
work.
"""

from ouzel.observability.progress import tell_progress
from ouzel.types.engine_messages import EngineEvent, EngineLoading, EngineReady


class EngineActivity:
    """Remembers the last known work of one engine."""

    def __init__(self) -> None:
        self._stage = ""  # stage of the start; empty until the engine reports the first one
        self._is_ready = False

    def begin(self) -> None:
        """Resets the record for a new engine."""
        self._stage, self._is_ready = "", False

    def note(self, event: EngineEvent) -> None:
        """Remembers the stage in the event, and shows it on the terminal."""
        match event:
            case EngineLoading(progress):
                self._stage = progress.stage
                tell_progress(progress)
            case EngineReady():
                self._is_ready = True
            case _:
                pass

    def name(self, *, has_requests: bool) -> str:
        """Returns the work as a participle, such as "computing"."""
        if self._is_ready:
            return "computing" if has_requests else "waiting for requests"
        return self._stage or "starting"
