"""Computes the number of replicas from the running and waiting requests."""

import math
from collections.abc import Mapping
from typing import Any, Protocol  # Any: Ray's replica ids and its policy state

from ouzel.cluster.replica_load import MOST_RUNNING, RUNNING, WAITING


class ScalingContext(Protocol):
    """Declares the part of Ray's `AutoscalingContext` that the policy reads."""

    @property
    def aggregated_metrics(self) -> Mapping[str, Mapping[Any, float]] | None:
        """Returns the reports of each replica, averaged over the last while."""
        ...

    @property
    def current_num_replicas(self) -> int: ...

    @property
    def policy_state(self) -> dict[str, Any]: ...


class WaitingPolicy:
    """Scales by waiting requests; Ray makes it by `autoscaling_config`, and applies bounds."""

    def __init__(self, target_waiting: float = 2.0, target_running: float | None = None) -> None:
        self._target_waiting = target_waiting
        self._target_running = target_running

    def __call__(self, context: ScalingContext) -> tuple[int, dict[str, Any]]:
        """Returns the number of replicas at which `target_waiting` requests wait on each at most.

        Running requests must fit too. Before the first reports the number stays as it is.
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
