"""What an engine does is known from what it has told: for people, when it ends in the middle of it."""

from ouzel.observability.progress import tell_progress
from ouzel.types import EngineEvent, EngineLoading, EngineReady


class EngineActivity:
    def __init__(self) -> None:
        self._stage = ""  # of the start; it has told none yet where that is empty
        self._is_ready = False

    def begin(self) -> None:
        """Notes that another engine starts."""
        self._stage, self._is_ready = "", False

    def note(self, event: EngineEvent) -> None:
        """Notes what the event says; people are told of stages."""
        match event:
            case EngineLoading(progress):
                self._stage = progress.stage
                tell_progress(progress)
            case EngineReady():
                self._is_ready = True
            case _:
                pass

    def name(self, *, has_requests: bool) -> str:
        """Returns what the engine does, as a participle."""
        if self._is_ready:
            return "computing" if has_requests else "waiting for requests"
        return self._stage or "starting"
