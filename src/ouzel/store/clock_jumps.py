"""Leases go by the database's clock, so a clock that is set forward ends the leases of servers that live.

So does a machine that has slept: the clock has gone on, and no server could renew its lease. A server that notices such
a jump takes nothing from others for the time of one lease, in which all that live renew theirs.
"""


class ClockJumps:
    """Compares the database's clock with the monotonic clock of this process, which nobody sets."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._lead_s: float | None = None  # of the database's clock, when it was looked at last
        self._is_settled_at_s = 0.0  # by the monotonic clock

    def are_settled(self, unix_s: float, monotonic_s: float) -> bool:
        """Takes the time by both clocks; returns whether a lease that is over tells that a server is dead."""
        lead_s = unix_s - monotonic_s
        if self._lead_s is not None and lead_s - self._lead_s > self._lease_s / 2:
            self._is_settled_at_s = monotonic_s + self._lease_s
        self._lead_s = lead_s
        return monotonic_s >= self._is_settled_at_s
