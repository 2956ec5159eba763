"""Reports the load of a replica: running and waiting sequences, and the size of its cache.

The report goes through Ray, which takes numbers by name.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ouzel.generation import ServedModel

WAITING, RUNNING, MOST_RUNNING = "waiting", "running", "most_running"
CACHE_TOKENS = "cache_tokens"


class ReplicaLoad(msgspec.Struct, frozen=True):
    """The latest report of a replica; zeros before the first one."""

    num_waiting: int = 0
    num_running: int = 0
    cache_tokens: int = 0

    @classmethod
    def of(cls, told: Mapping[str, float]) -> "ReplicaLoad":
        return cls(*(int(told.get(name, 0)) for name in (WAITING, RUNNING, CACHE_TOKENS)))

    @property
    def num_unfinished(self) -> int:
        return self.num_waiting + self.num_running


def report_load(models: Iterable[ServedModel]) -> dict[str, float]:
    """Returns the report of a replica with these models; adapters share their model's engine."""
    engines = [model.engine for model in models if not model.adapter]
    infos = [engine.info for engine in engines]
    stats = [
        stats
        for engine in engines
        for member in engine.members
        if (stats := member.stats()) is not None
    ]
    return {
        WAITING: float(sum(each.num_waiting for each in stats)),
        RUNNING: float(sum(each.num_running for each in stats)),
        MOST_RUNNING: float(sum(info.max_num_seqs for info in infos)),
        CACHE_TOKENS: float(sum(info.num_blocks * info.block_size for info in infos)),
    }
