"""Downloads models and deletes them, for clients that follow each other's downloads.

Rules
1. A model is downloaded once at a time. A second request for it follows the same download.
2. A download stops when the last of its followers leaves. The next one begins after its end, so
   that it finds the files in order, and continues where the first one stopped.
3. At most `MAX_DOWNLOADS` run at a time; others wait, and tell their followers so.
4. A model that is served, being loaded or being downloaded is not deleted.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Literal, Protocol  # Any: the type of values that are sent into coroutines

from ouzel.errors import (
    EngineUnavailable,
    InvalidRequest,
    OuzelError,
    TryLater,
)

MAX_DOWNLOADS = 3

Stage = Literal["waiting", "listing", "file", "verifying", "writing"]


class DiskFull(OuzelError):
    """The disk has no room for the files of a model."""

    status = 507
    code = "insufficient_storage"


class HubFailed(TryLater):
    """The hub cannot be reached, or it has failed."""

    status = 503
    type = "service_unavailable_error"
    code = "hub_unavailable"


class ModelInUse(InvalidRequest):
    """The model is loaded or being downloaded, so its files stay."""

    status = 409
    code = "model_in_use"


@dataclass(frozen=True, slots=True)
class PullProgress:
    """A stage that has begun, or the progress of one file."""

    stage: Stage
    file: str = ""
    digest: str = ""  # `sha256:…`, or the hub's own mark of the content
    done_bytes: int = 0
    total_bytes: int = 0


class ModelPuller(Protocol):
    """Downloads models onto this disk, and deletes them."""

    def pull(self, name: str) -> AsyncGenerator[PullProgress, None]:
        """Downloads a model, or only its missing files; closing the generator stops the download.

        Raises InvalidRequest, ModelNotFound, DiskFull and HubFailed.
        """
        ...

    async def is_present(self, name: str) -> bool:
        """Tells whether all files of the model are on this disk, without asking the hub."""
        ...

    async def delete(self, name: str) -> int:
        """Deletes the files of a model that is not loaded; returns the number of freed bytes.

        Raises ModelNotFound, ModelInUse and InvalidRequest.
        """
        ...


class ModelPulls:
    """The downloads of a server. All methods are called in its event loop."""

    def __init__(
        self,
        puller: ModelPuller,
        *,
        on_pulled: Callable[[str], Awaitable[None]],
        on_deleted: Callable[[str], Awaitable[None]],
    ) -> None:
        self._puller = puller
        self._on_pulled = on_pulled
        self._on_deleted = on_deleted
        self._downloads: dict[str, _Download] = {}
        self._deleting: set[str] = set()
        self._places = asyncio.Semaphore(MAX_DOWNLOADS)
        self._is_closing = False

    async def pull(self, name: str) -> AsyncGenerator[PullProgress, None]:
        """Downloads a model, or follows its download.

        Raises the errors of `ModelPuller.pull`, and EngineUnavailable if the server stops.
        """
        download = await self._find_or_begin(name)
        async with aclosing(download.follow()) as progress:
            async for each in progress:
                yield each

    async def is_present(self, name: str) -> bool:
        return await self._puller.is_present(name)

    async def delete(self, name: str) -> int:
        """Deletes a model's files; returns the number of freed bytes.

        Raises the errors of `ModelPuller.delete`.
        """
        if name in self._downloads:
            raise ModelInUse(f"the model {name[:100]!r} is being downloaded", param="model")
        if name in self._deleting:
            raise ModelInUse(f"the model {name[:100]!r} is being deleted", param="model")
        self._deleting.add(name)
        try:
            num_bytes = await self._puller.delete(name)
        finally:
            self._deleting.discard(name)
        await self._on_deleted(name)
        return num_bytes

    async def close(self) -> None:
        """Stops all downloads; their followers get an error."""
        self._is_closing = True
        for download in list(self._downloads.values()):
            await download.stop()

    async def _find_or_begin(self, name: str) -> "_Download":
        while True:
            if self._is_closing:
                raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
            if name in self._deleting:
                raise ModelInUse(f"the model {name[:100]!r} is being deleted", param="model")
            download = self._downloads.get(name)
            if download is None:
                download = self._begin(name)
            if not download.is_stopping:
                return download
            await download.wait()  # rule 2

    def _begin(self, name: str) -> "_Download":
        download = self._downloads[name] = _Download()
        download.begin(self._run(name, download), at_end=lambda: self._downloads.pop(name))
        return download

    async def _run(self, name: str, download: "_Download") -> None:
        if self._places.locked():
            download.tell(PullProgress("waiting"))
        async with self._places, aclosing(self._puller.pull(name)) as progress:
            async for each in progress:
                download.tell(each)
        await self._on_pulled(name)


class _Download:
    """One download and its followers, each of which reads at its own speed."""

    def __init__(self) -> None:
        # The latest progress by stage and digest, in the order of their first appearance. A slow
        # follower skips progress that was replaced meanwhile.
        self._latest: dict[tuple[Stage, str], PullProgress] = {}
        self._num_followers = 0
        self._has_news = asyncio.Event()
        self._task: asyncio.Task[None]
        self.is_stopping = False

    def begin(self, work: Coroutine[Any, Any, None], at_end: Callable[[], object]) -> None:
        def end(task: asyncio.Task[None]) -> None:
            if not task.cancelled():
                task.exception()  # asyncio logs errors that nobody has read
            at_end()
            self._wake()

        # The empty context: a download may outlive the request that begins it.
        self._task = asyncio.create_task(work, context=Context())
        self._task.add_done_callback(end)

    def tell(self, progress: PullProgress) -> None:
        self._latest[progress.stage, progress.digest] = progress
        self._wake()

    async def follow(self) -> AsyncGenerator[PullProgress, None]:
        """Yields the progress until the end. Raises the error of the download."""
        seen: dict[tuple[Stage, str], PullProgress] = {}
        self._num_followers += 1
        try:
            while True:
                news, is_done = self._has_news, self._task.done()
                for progress in self._take_new(seen):
                    yield progress
                if is_done:
                    self._raise_failure()
                    return
                await news.wait()
        finally:
            self._num_followers -= 1
            if not self._num_followers:
                await self.stop()

    def _take_new(self, seen: dict[tuple[Stage, str], PullProgress]) -> list[PullProgress]:
        new = [each for key, each in self._latest.items() if seen.get(key) is not each]
        seen.update(self._latest)
        return new

    def _raise_failure(self) -> None:
        if self._task.cancelled():
            raise EngineUnavailable("the server is shutting down", retry_after_s=1.0)
        error = self._task.exception()
        if error is not None:
            raise error

    async def stop(self) -> None:
        """Stops the download, if it still runs, and waits for its end."""
        self.is_stopping = True
        self._task.cancel()
        await self.wait()

    async def wait(self) -> None:
        """Waits for the end of the download, and leaves its error to the followers."""
        await asyncio.wait([self._task])

    def _wake(self) -> None:
        self._has_news.set()
        self._has_news = asyncio.Event()
