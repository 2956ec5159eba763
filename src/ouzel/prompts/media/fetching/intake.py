"""Gets the bytes of content parts outside the event loop: from the part itself, a server or a
file.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from socket import SOCK_STREAM, getaddrinfo
from typing import TYPE_CHECKING, TypeVar, assert_never

from ouzel.config.media import MediaConfig
from ouzel.config.media_hosts import AllowedHosts, read_media_hosts
from ouzel.outbound.hosts import Resolve, check_host, read_target
from ouzel.prompts.media.fetching.local_files import LocalFiles
from ouzel.prompts.media.fetching.sources import (
    FileSource,
    InlineSource,
    RemoteSource,
    Source,
    UploadedSource,
    read_inline,
)
from ouzel.prompts.media.picture import PictureLimits, check_file_size
from ouzel.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from ouzel.prompts.media.fetching.downloads import Downloads

Result = TypeVar("Result")

_MAX_READERS = 4


class Intake:
    """Gets the bytes of content parts. It belongs to one event loop."""

    def __init__(
        self,
        config: MediaConfig,
        *,
        resolve: Resolve | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """`resolve` finds the addresses of a host (default: the system's resolver). `ssl_context`
        is for downloads.
        """
        self.limits = PictureLimits(config.max_media_bytes, config.max_media_pixels)
        self._files = LocalFiles(config.allowed_local_media_path)
        self._threads = WorkerThreads("pictures' files", _MAX_READERS)
        self._names = WorkerThreads("names of hosts", _MAX_READERS)
        self._allowed_hosts = read_media_hosts(config.allowed_media_domains)
        self._make_downloads = partial(
            _new_downloads,
            self._allowed_hosts,
            config.media_timeout_s,
            resolve or partial(_resolve, self._names),
            ssl_context,
        )
        self._starting_downloads = asyncio.Lock()
        self._downloads: Downloads | None = None

    async def run(self, work: Callable[[], Result]) -> Result:
        """Runs short work in a thread that reads files."""
        return await self._threads.run(work)

    async def read(self, source: Source, path: str, check: Callable[[bytes], Result]) -> Result:
        """Gets the bytes and returns the result of `check`, which runs in a thread.

        `path` names the part in errors. Raises InvalidRequest.
        """
        match source:
            case RemoteSource():
                data = await self._download(source.url, path)
                return await self._threads.run(partial(check, data))
            case InlineSource() | FileSource() | UploadedSource():
                return await self._threads.run(lambda: check(self._read(source, path)))
            case _:
                assert_never(source)

    def _read(self, source: InlineSource | FileSource | UploadedSource, path: str) -> bytes:
        if isinstance(source, InlineSource):
            return read_inline(source, path, self.limits)
        if isinstance(source, UploadedSource):
            check_file_size(len(source.data), path, self.limits)
            return source.data
        return self._files.read(source.file_path, path, self.limits)

    async def _download(self, url: str, path: str) -> bytes:
        target = read_target(url, path)
        check_host(target, self._allowed_hosts, path)
        async with self._starting_downloads:
            if self._downloads is None:
                self._downloads = await self._threads.run(self._make_downloads)
        return await self._downloads.download(target, path, self.limits)

    def close(self) -> None:
        """Ends the threads without waiting for running work."""
        for threads in (self._threads, self._names):
            threads.close()


def _new_downloads(
    allowed: AllowedHosts, timeout_s: float, resolve: Resolve, ssl_context: ssl.SSLContext | None
) -> "Downloads":
    from ouzel.prompts.media.fetching.downloads import Downloads  # noqa: PLC0415  a slow import

    return Downloads(allowed, timeout_s, resolve, ssl_context)


async def _resolve(threads: WorkerThreads, host: str, port: int) -> list[str]:
    """Returns the addresses of a host, without duplicates. Raises OSError."""
    found = await threads.run(partial(getaddrinfo, host, port, type=SOCK_STREAM))
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
