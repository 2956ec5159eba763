"""How many replicas there should be, by what runs and what waits on those that there are."""

import math
from collections.abc import Mapping
from typing import Any, Protocol  # Any: Ray's ids of replicas, and its own state

from ouzel.cluster.replica_load import MOST_RUNNING, RUNNING, WAITING


class ScalingContext(Protocol):
    """Ray's `AutoscalingContext`, as far as it is read here."""

    @property
    def aggregated_metrics(self) -> Mapping[str, Mapping[Any, float]] | None:
        """Returns what replicas have told, each as its mean of the last while."""
        ...

    @property
    def current_num_replicas(self) -> int: ...

    @property
    def policy_state(self) -> dict[str, Any]: ...


class WaitingPolicy:
    """Ray makes it of an application's `autoscaling_config`, and applies bounds and delays to what it says."""

    def __init__(self, target_waiting: float = 2.0, target_running: float | None = None) -> None:
        self._target_waiting = target_waiting
        self._target_running = target_running

    def __call__(self, context: ScalingContext) -> tuple[int, dict[str, Any]]:
        """Returns the number of replicas: as many as have `target_waiting` each, and hold what runs.

        Before replicas have told anything there is no reason to change their number.
        """
        told = context.aggregated_metrics or {}
        if not told.get(WAITING):
            return context.current_num_replicas, context.policy_state
        waiting, running, most = (
            sum(told.get(name, {}).values()) for name in (WAITING, RUNNING, MOST_RUNNING)
        )
        num_telling = len(told[WAITING])
        wanted = [waiting / self._target_waiting, num_telling * running / most if most else 0.0]
        if self._target_running is not None:
            wanted.append(running / self._target_running)
        return max(1, *map(math.ceil, wanted)), context.policy_state
