"""Holds all containers of a server. A container belongs to the API key that has made it."""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ouzel.hosted_tools.code_interpreter.cgroup import prepare_cgroup
from ouzel.hosted_tools.code_interpreter.container import Container
from ouzel.hosted_tools.code_interpreter.records import (
    ContainerNotFound,
    SandboxPlan,
    TooManyContainers,
)
from ouzel.hosted_tools.code_interpreter.sandbox_process import SandboxProcess

logger = logging.getLogger(__name__)

_RETRY_S = 60.0
_REPLACED_AFTER_S = 120.0  # time without a call; a model may write its answer meanwhile
_MAX_ENDED = 10_000  # ids of ended containers that are remembered


class Containers:
    def __init__(
        self,
        plan: SandboxPlan,
        *,
        max_containers: int,
        max_per_key: int | None = None,
        idle_s: float,
    ) -> None:
        """`idle_s` is the longest time without a call after which a container ends.

        `max_per_key` limits the containers of each API key; a server without keys has no such
        limit.
        """
        self.plan = plan
        self.max_idle_s = idle_s
        self._max_containers = max_containers
        self._max_per_key = max_per_key
        self._containers: dict[str, Container] = {}  # until all of its processes have ended
        self._ended: dict[str, None] = {}  # ids of ended containers, the oldest first
        self._starting: Counter[str | None] = Counter()  # number for each key
        self._is_closed = False
        if plan.cgroup is not None:
            prepare_cgroup(plan.cgroup)

    async def create(
        self,
        key_id: str | None,
        *,
        container_id: str | None = None,
        name: str = "",
        memory_bytes: int | None = None,
        idle_s: float | None = None,
        is_automatic: bool = False,
    ) -> Container:
        """Starts a container; it may ask for less memory and time than the operator allows.

        `container_id` is an id of `new_container_id` that no container has had. With
        `is_automatic`, the container may take the place of an older automatic one of the key.
        Raises TooManyContainers and SandboxUnavailable.
        """
        await self._make_room(key_id, may_replace=is_automatic)
        container_id = container_id or new_container_id()
        assert container_id not in self._containers
        limits = self.plan.limits
        plan = replace(
            self.plan,
            limits=replace(limits, memory_bytes=memory_bytes or limits.memory_bytes),
        )
        self._starting[key_id] += 1
        try:
            sandbox = await SandboxProcess.start(plan, container_id)
        finally:
            self._starting[key_id] -= 1
            self._starting += Counter()  # drops the keys that start none
        container = Container(
            container_id,
            sandbox,
            name=name,
            key_id=key_id,
            idle_s=min(idle_s or self.max_idle_s, self.max_idle_s),
            is_automatic=is_automatic,
            on_end=self._forget,
        )
        self._containers[container_id] = container
        if not self._may_start():  # closed meanwhile
            await container.end("the server stops")
        logger.info("container %s was made", container_id)
        return container

    def find(self, container_id: str, key_id: str | None) -> Container:
        """Returns a running container of a key. Raises ContainerNotFound."""
        found = self._containers.get(container_id)
        if found is None or found.key_id != key_id or found.is_ending:
            raise ContainerNotFound(container_id)
        return found

    def has_ended(self, container_id: str) -> bool:
        """Tells whether there was a container with this id. An id is never used again."""
        found = self._containers.get(container_id)
        return container_id in self._ended or (found is not None and found.is_ending)

    def list(self, key_id: str | None) -> "Sequence[Container]":
        """Returns the containers of a key, the oldest first."""
        return [
            each
            for each in self._containers.values()
            if each.key_id == key_id and not each.is_ending
        ]

    async def close(self) -> None:
        """Ends all containers."""
        self._is_closed = True
        ending = [each.end("the server stops") for each in self._containers.values()]
        await asyncio.gather(*ending)

    async def _make_room(self, key_id: str | None, *, may_replace: bool) -> None:
        """Raises TooManyContainers if no container may be made for the key.

        With `may_replace`, first ends the automatic container of the key that nobody has used for
        the longest time: its conversation is probably over.
        """
        try:
            self._check_room(key_id)
        except TooManyContainers:
            unused = [each for each in self.list(key_id) if _is_replaceable(each)]
            if not may_replace or not unused:
                raise
            oldest = min(unused, key=lambda each: each.last_active_at)
            await oldest.end("a newer container of its API key needed the place")
            self._check_room(key_id)

    def _check_room(self, key_id: str | None) -> None:
        """Raises TooManyContainers if no container may be made for the key now."""
        most = self._max_per_key
        of_key = sum(each.key_id == key_id for each in self._containers.values())
        if key_id is not None and most is not None and of_key + self._starting[key_id] >= most:
            raise TooManyContainers(
                f"this API key has {most} containers, which is its limit "
                f"(sandbox_max_per_key): delete one, or wait until one has expired",
                retry_after_s=_RETRY_S,
            )
        is_full = len(self._containers) + self._starting.total() >= self._max_containers
        if is_full or not self._may_start():
            raise TooManyContainers(
                f"this server has {self._max_containers} containers, which is its limit "
                f"(sandbox_max_containers): delete one, or wait until one has expired",
                retry_after_s=_RETRY_S,
            )

    def _may_start(self) -> bool:
        return not self._is_closed

    def _forget(self, container: Container) -> None:
        self._containers.pop(container.id, None)
        self._ended[container.id] = None
        if len(self._ended) > _MAX_ENDED:
            del self._ended[next(iter(self._ended))]


def _is_replaceable(container: Container) -> bool:
    unused_s = time.time() - container.last_active_at
    return container.is_automatic and not container.is_busy and unused_s > _REPLACED_AFTER_S


def new_container_id() -> str:
    return f"cntr_{secrets.token_hex(24)}"
