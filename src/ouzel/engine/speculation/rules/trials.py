"""Allows a trial of drafts that do not pay from time to time, to notice when they would."""

TIME_SHARE = 0.01  # share of the time of all steps that trials may take
_MOST_SAVED_S = 0.5  # limits the trials after hours without any
_MOST_OWED_S = 0.1


class Trials:
    """Manages a budget of time for trials, saved from the time of steps."""

    def __init__(self) -> None:
        self._saved_s = 0.0

    def save(self, step_s: float) -> None:
        """Adds a share of a step's time to the budget."""
        self._saved_s = min(self._saved_s + TIME_SHARE * step_s, _MOST_SAVED_S)

    def is_due(self, trial_s: float, *, is_promising: bool) -> bool:
        """Tells whether a trial of `trial_s` may run now, and if so takes its time from the budget.

        A trial whose last draft was accepted need not wait: the budget may go slightly below 0.
        """
        if self._saved_s < (-_MOST_OWED_S if is_promising else trial_s):
            return False
        self._saved_s -= trial_s
        return True
