"""A draft that does not pay is tried now and then, so that it is known when it would."""

TIME_SHARE = 0.01  # of all steps, that trials may take
_MOST_SAVED_S = 0.5  # so that after hours without any they do not come one after the other
_MOST_OWED_S = 0.1


class Trials:
    """They are paid for with a share of the time that steps took."""

    def __init__(self) -> None:
        self._saved_s = 0.0

    def save(self, step_s: float) -> None:
        """Takes note of how long a step took."""
        self._saved_s = min(self._saved_s + TIME_SHARE * step_s, _MOST_SAVED_S)

    def is_due(self, trial_s: float, *, is_promising: bool) -> bool:
        """Tells whether one may take so long, and if so takes that from what was saved.

        One that is promising, as it came true the last time, need not wait: a little can be owed.
        """
        if self._saved_s < (-_MOST_OWED_S if is_promising else trial_s):
            return False
        self._saved_s -= trial_s
        return True
