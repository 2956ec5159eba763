"""Detects jumps of the database's clock, which end leases of living servers.

Leases use the database's clock. A clock that is set forward ends all leases at once. So does a
machine that sleeps: its clock goes on while no server can renew its lease. A server that detects a
jump takes no responses of other servers for the time of one lease. In this time all living servers
renew their leases.
"""


class ClockJumps:
    """Tells whether an ended lease means a dead server.

    For one lease time after the database's clock jumped forward, it does not. The monotonic clock
    of this process shows a jump, because no administrator can set this clock.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        # The database's clock minus the monotonic clock, at the last look.
        self._lead_s: float | None = None
        self._is_settled_at_s = 0.0  # time of the monotonic clock

    def are_settled(self, unix_s: float, monotonic_s: float) -> bool:
        """Compares the times of both clocks with the last ones.

        Returns True unless the clock has jumped lately: then an ended lease means a dead server.
        """
        lead_s = unix_s - monotonic_s
        if self._lead_s is not None and lead_s - self._lead_s > self._lease_s / 2:
            self._is_settled_at_s = monotonic_s + self._lease_s
        self._lead_s = lead_s
        return monotonic_s >= self._is_settled_at_s
