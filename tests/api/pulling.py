"""A stand-in for the downloads of a server, which a test holds back and lets go on."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

from ouzel.api.endpoint.model_pulls import DiskFull, PullProgress
from ouzel.errors import ModelNotFound

NUM_BYTES = 100


@dataclass
class ScriptedPuller:
    """Implements `ModelPuller`. Models of `owner/` exist; `owner/large` does not fit on the disk.

    A download has half of its only file, until the test sets `may_end`.
    """

    may_end: threading.Event = field(default_factory=threading.Event)
    present: set[str] = field(default_factory=set)
    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)  # also the stopped ones

    async def pull(self, name: str) -> AsyncGenerator[PullProgress, None]:
        self.begun.append(name)
        try:
            yield PullProgress("listing")
            if name == "owner/large":
                raise DiskFull("9 GB are still to be fetched, and /disk has 1 GB free")
            if not name.startswith("owner/"):
                raise ModelNotFound(f"the hub has no model {name}", param="model")
            yield PullProgress("file", "weights", "sha256:abc", NUM_BYTES // 2, NUM_BYTES)
            while not self.may_end.is_set():
                await asyncio.sleep(0.005)
            yield PullProgress("file", "weights", "sha256:abc", NUM_BYTES, NUM_BYTES)
            yield PullProgress("verifying")
            yield PullProgress("writing")
            self.present.add(name)
        finally:
            self.ended.append(name)

    async def is_present(self, name: str) -> bool:
        return name in self.present

    async def delete(self, name: str) -> int:
        if name not in self.present:
            raise ModelNotFound(f"the model {name!r} is not on this disk", param="model")
        self.present.remove(name)
        return NUM_BYTES


def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.005)
