"""Loads pictures from content parts and decodes them, outside the event loop."""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from threading import Event
from typing import TypeVar, cast

from ouzel.config.media import MediaConfig
from ouzel.errors import InvalidRequest
from ouzel.outbound.hosts import Resolve
from ouzel.prompts.media.decoding_memory import DecodingMemory
from ouzel.prompts.media.fetching.intake import Intake
from ouzel.prompts.media.fetching.sources import Source, find_source
from ouzel.prompts.media.held_bytes import HeldBytes
from ouzel.prompts.media.parts import MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.media.pictures import Pictures
from ouzel.prompts.media.pixels import BYTES_PER_PIXEL
from ouzel.worker_threads import WorkerThreads

Result = TypeVar("Result")

_MAX_DECODERS = 4


class MediaLoader:
    """Loads and decodes pictures. It belongs to one event loop."""

    def __init__(
        self,
        config: MediaConfig,
        *,
        imports: Sequence[str] = (),
        resolve: Resolve | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """`imports` are modules that the decoding process needs.

        `resolve` finds the addresses of a host (default: the system's resolver). `ssl_context` is
        for downloads.
        """
        self.config = config
        self.intake = Intake(config, resolve=resolve, ssl_context=ssl_context)
        self.decoders = Pictures(self.intake.limits, imports)
        self.held_bytes = HeldBytes(config.max_media_bytes_total)
        self._memory = DecodingMemory(config.max_media_memory_bytes)
        self._decoding = WorkerThreads("pictures", min(_MAX_DECODERS, os.cpu_count() or 1))

    async def load(self, parts: Sequence[MediaPart]) -> list[Picture]:
        """Returns a picture for each part of a request, in order. Raises InvalidRequest or
        Overloaded.
        """
        max_images = self.config.max_images
        if len(parts) > max_images:
            raise InvalidRequest(
                f"must be one of <= {max_images} pictures in a request (max_images), "
                f"given {len(parts)}",
                field=parts[max_images].path,
            )
        return await self.pictures(parts)

    async def pictures(self, parts: Sequence[MediaPart]) -> list[Picture]:
        """Returns a picture for each part, without a limit of their number.

        Parts with the same text are loaded once. Raises InvalidRequest or Overloaded.
        """
        if not parts:
            return []
        sources = await self.intake.run(partial(_distinct_sources, parts))
        pictures = await run_concurrently(
            [self._picture(source, path) for source, path in sources.values()]
        )
        by_url = dict(zip(sources, pictures, strict=True))
        return [by_url[part.url] for part in parts]

    async def _picture(self, source: Source, path: str) -> Picture:
        picture = await self.intake.read(source, path, partial(self.decoders.read, path=path))
        self.held_bytes.add(picture, len(picture.data))
        return picture

    async def decode(
        self, pictures: Sequence[Picture], prepare: Callable[[Picture], Result]
    ) -> list[Result]:
        """Returns the result of `prepare` for each picture, in order. Raises the errors of
        `prepare`.

        `prepare` runs in a thread with memory set aside, where it may call `decoders`. It is called
        once for pictures from the same file.
        """
        is_abandoned = Event()

        def decode_one(picture: Picture) -> Result | None:
            with self._memory.hold(picture.num_pixels * BYTES_PER_PIXEL):
                return None if is_abandoned.is_set() else prepare(picture)

        distinct: dict[bytes, Picture] = {}
        for picture in pictures:
            distinct.setdefault(picture.digest, picture)
        try:
            results = await run_concurrently(
                [self._decoding.run(partial(decode_one, picture)) for picture in distinct.values()]
            )
        finally:
            is_abandoned.set()
        by_digest = dict(zip(distinct, results, strict=True))
        return [cast(Result, by_digest[picture.digest]) for picture in pictures]

    def close(self) -> None:
        """Ends the threads and the process without waiting for running work."""
        self.intake.close()
        self._decoding.close()
        self.decoders.close()


def _distinct_sources(parts: Sequence[MediaPart]) -> dict[str, tuple[Source, str]]:
    """Returns the sources by text, each with the path of its first part. Raises InvalidRequest."""
    sources: dict[str, tuple[Source, str]] = {}
    for part in parts:
        if part.url not in sources:
            sources[part.url] = find_source(part), part.path
    return sources


async def run_concurrently(works: Sequence[Coroutine[object, object, Result]]) -> list[Result]:
    """Runs all coroutines and returns their results in order.

    If one fails, or the caller is cancelled, the others are cancelled and have ended on return.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await _cancel(tasks)
        tasks.clear()  # else an error raised here would keep itself and the files alive


async def _cancel(tasks: Sequence[asyncio.Task[Result]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
