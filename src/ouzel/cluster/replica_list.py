"""Reads the reports of replicas from the list that Ray keeps in each process with a handle."""

from typing import Any, ClassVar  # Any: Ray's arguments

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from ouzel.cluster.replica_load import ReplicaLoad


class ReplicaList(RequestRouter):  # type: ignore[misc]  # Ray's types are not looked at
    """A request router of Ray Serve that shows replicas and their loads to the `ReplicaChooser`.

    Ray makes one instance in each process with a handle of the replicas.
    """

    _latest: ClassVar["ReplicaList | None"] = None

    def initialize_state(self, **_: Any) -> None:
        ReplicaList._latest = self

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Returns all replicas as equals: Ray takes the one with the shortest queue.

        Ray's own proxy asks, for requests that HAProxy cannot pass on.
        """
        return [candidate_replicas]

    @classmethod
    def loads(cls) -> dict[str, ReplicaLoad]:
        """Returns the reports of the replicas by their names in HAProxy; none before the first."""
        if cls._latest is None:
            return {}
        replicas = cls._latest.curr_replicas
        return {
            name.to_full_id_str(): ReplicaLoad.of(each.routing_stats)
            for name, each in replicas.items()
        }
