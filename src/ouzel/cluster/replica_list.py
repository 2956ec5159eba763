"""Ray keeps a list of the replicas in each process that gives requests to them; a door looks at it."""

from typing import Any, ClassVar  # Any: Ray's arguments

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from ouzel.cluster.replica_load import ReplicaLoad


class ReplicaList(RequestRouter):  # type: ignore[misc]  # Ray's types are not looked at
    """A process that has a handle of the replicas has one."""

    _latest: ClassVar["ReplicaList | None"] = None

    def initialize_state(self, **_: Any) -> None:
        ReplicaList._latest = self

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """Returns them as equals: Ray takes the one with the shortest queue.

        Its own proxy asks, which gets what HAProxy cannot pass on.
        """
        return [candidate_replicas]

    @classmethod
    def loads(cls) -> dict[str, ReplicaLoad]:
        """Returns what replicas have told, by the names that HAProxy has for them; none before Ray has told of any."""
        if cls._latest is None:
            return {}
        replicas = cls._latest.curr_replicas
        return {
            name.to_full_id_str(): ReplicaLoad.of(each.routing_stats)
            for name, each in replicas.items()
        }
