"""An engine that has died is started again at once the first time, and after growing pauses when that does not help."""

_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
_STABLE_AFTER_S = 60.0  # an engine that ran this long starts again without a pause


class RestartPauses:
    def __init__(self) -> None:
        self._num_failures = 0

    def after(self, ran_s: float) -> float:
        """Returns how long to wait after an engine that ran so long."""
        if ran_s > _STABLE_AFTER_S:
            self._num_failures = 0
        pause_s = _PAUSES_S[min(self._num_failures, len(_PAUSES_S) - 1)]
        self._num_failures += 1
        return pause_s
