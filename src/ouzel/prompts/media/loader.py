"""What content parts name becomes pictures, beside the event loop."""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from socket import SOCK_STREAM, getaddrinfo
from threading import Event
from typing import TYPE_CHECKING, TypeVar, assert_never, cast

from ouzel.config.media import MediaConfig
from ouzel.config.media_hosts import AllowedHosts, read_media_hosts
from ouzel.errors import InvalidRequest
from ouzel.prompts.media.decoding_memory import DecodingMemory
from ouzel.prompts.media.held_bytes import HeldBytes
from ouzel.prompts.media.hosts import Resolve, check_host, read_target
from ouzel.prompts.media.local_files import LocalFiles
from ouzel.prompts.media.parts import MediaPart
from ouzel.prompts.media.picture import Picture, PictureLimits, read_picture
from ouzel.prompts.media.pixels import BYTES_PER_PIXEL, decode
from ouzel.prompts.media.sources import FileSource, InlineSource, RemoteSource, Source, read_inline, read_source
from ouzel.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from PIL.Image import Image

    from ouzel.prompts.media.downloads import Downloads

Result = TypeVar("Result")

_MAX_READERS = 4
_MAX_DECODERS = 4


class MediaLoader:
    """Belongs to one event loop."""

    def __init__(
        self, config: MediaConfig, *, resolve: Resolve | None = None, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        """`resolve` finds the addresses of a host (by default as the machine does), `ssl_context` is for downloads."""
        self._max_images = config.max_images
        self._limits = PictureLimits(config.max_media_bytes, config.max_media_pixels)
        self._files = LocalFiles(config.allowed_local_media_path)
        self.held_bytes = HeldBytes(config.max_media_bytes_total)
        self._reading = WorkerThreads("pictures' files", _MAX_READERS)
        self._decoding = WorkerThreads("pictures", min(_MAX_DECODERS, os.cpu_count() or 1))
        self._names = WorkerThreads("names of hosts", _MAX_READERS)
        self._memory = DecodingMemory(config.max_media_memory_bytes)
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

    async def load(self, parts: Sequence[MediaPart]) -> list[Picture]:
        """Returns a picture for each part, in their order. Raises InvalidRequest, Overloaded.

        What several parts name by the same text is loaded once.
        """
        if len(parts) > self._max_images:
            raise InvalidRequest(
                f"must be one of <= {self._max_images} pictures in a request (max_images), given {len(parts)}",
                field=parts[self._max_images].path,
            )
        if not parts:
            return []
        sources = await self._reading.run(partial(_distinct_sources, parts))
        pictures = await _side_by_side([self._picture(source, path) for source, path in sources.values()])
        by_url = dict(zip(sources, pictures, strict=True))
        return [by_url[part.url] for part in parts]

    async def _picture(self, source: Source, path: str) -> Picture:
        match source:
            case RemoteSource():
                data = await self._download(source.url, path)
                picture = await self._reading.run(partial(read_picture, data, path, self._limits))
            case InlineSource() | FileSource():
                picture = await self._reading.run(partial(self._read, source, path))
            case _:
                assert_never(source)
        self.held_bytes.add(picture, len(picture.data))
        return picture

    def _read(self, source: InlineSource | FileSource, path: str) -> Picture:
        if isinstance(source, InlineSource):
            data = read_inline(source, path, self._limits)
        else:
            data = self._files.read(source.file_path, path, self._limits)
        return read_picture(data, path, self._limits)

    async def _download(self, url: str, path: str) -> bytes:
        target = read_target(url, path)
        check_host(target, self._allowed_hosts, path)
        async with self._starting_downloads:
            if self._downloads is None:
                self._downloads = await self._reading.run(self._make_downloads)
        return await self._downloads.download(target, path, self._limits)

    async def decode(self, pictures: Sequence[Picture], prepare: "Callable[[Picture, Image], Result]") -> list[Result]:
        """Returns what `prepare`, which runs in a thread, makes of each one's pixels, in order. Raises InvalidRequest.

        What the same file holds is decoded once.
        """
        is_abandoned = Event()

        def decode_one(picture: Picture) -> Result | None:
            with self._memory.hold(picture.num_pixels * BYTES_PER_PIXEL):
                return None if is_abandoned.is_set() else prepare(picture, decode(picture))

        distinct: dict[bytes, Picture] = {}
        for picture in pictures:
            distinct.setdefault(picture.digest, picture)
        try:
            results = await _side_by_side(
                [self._decoding.run(partial(decode_one, picture)) for picture in distinct.values()]
            )
        finally:
            is_abandoned.set()
        by_digest = dict(zip(distinct, results, strict=True))
        return [cast(Result, by_digest[picture.digest]) for picture in pictures]

    def close(self) -> None:
        """What runs is not waited for."""
        for threads in (self._reading, self._decoding, self._names):
            threads.close()


def _distinct_sources(parts: Sequence[MediaPart]) -> dict[str, tuple[Source, str]]:
    """Returns sources by their texts, each with the path of the first part that has it. Raises InvalidRequest."""
    sources: dict[str, tuple[Source, str]] = {}
    for part in parts:
        if part.url not in sources:
            sources[part.url] = read_source(part.url, part.path), part.path
    return sources


def _new_downloads(
    allowed: AllowedHosts, timeout_s: float, resolve: Resolve, ssl_context: ssl.SSLContext | None
) -> "Downloads":
    from ouzel.prompts.media.downloads import Downloads  # noqa: PLC0415  takes a quarter of a second

    return Downloads(allowed, timeout_s, resolve, ssl_context)


async def _resolve(threads: WorkerThreads, host: str, port: int) -> list[str]:
    """Raises OSError."""
    found = await threads.run(partial(getaddrinfo, host, port, type=SOCK_STREAM))
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def _side_by_side(works: Sequence[Coroutine[object, object, Result]]) -> list[Result]:
    """Returns all results in order. When one fails, or who waits leaves, the others are cancelled and have ended."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
