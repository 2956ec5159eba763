"""Computes the pause before a dead engine is restarted: none at first, then growing ones."""

_PAUSES_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
_STABLE_AFTER_S = 60.0  # an engine that ran this long starts again without a pause


class RestartPauses:
    """Counts the failures of one engine in a row."""

    def __init__(self) -> None:
        self._num_failures = 0

    def choose_pause(self, ran_s: float) -> float:
        """Returns the pause after an engine that ran for `ran_s`."""
        if ran_s > _STABLE_AFTER_S:
            self._num_failures = 0
        pause_s = _PAUSES_S[min(self._num_failures, len(_PAUSES_S) - 1)]
        self._num_failures += 1
        return pause_s
