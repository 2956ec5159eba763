"""Indexes the files of vector stores in the background, one after the other.

Rules
1. A file belongs to the server that indexes it, as a batch does; a server that ends gives it back.
2. A file whose server was killed is indexed again, once: after a second kill the file itself may be
   the cause, and it fails.
3. A model that is busy or being loaded is waited for (`PatientEmbedder`).
"""

import asyncio
import logging
from contextlib import suppress

from ouzel.errors import STOPS, OuzelError
from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.hosted_tools.file_search.indexing import FileIndexing
from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound, StoreUnavailable
from ouzel.store.vector_stores.records import IndexJob

logger = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_BEAT_EVERY_S = 2.0
_WAIT_S = 2.0  # after a fault that may pass
_MAX_TRIES = 2


class Indexer:
    """Belongs to one event loop."""

    def __init__(
        self, store: Store, indexing: FileIndexing, *, has_new_files: asyncio.Event
    ) -> None:
        """Looks for files when `has_new_files` is set, and every second."""
        self._store = store
        self._indexing = indexing
        self._has_new_files = has_new_files
        self._current: asyncio.Task[None] | None = None
        self._draining = asyncio.Event()

    async def watch(self) -> None:
        """Indexes files until it is cancelled; `drain` stops it earlier."""
        try:
            await self._index_all()
            await asyncio.get_running_loop().create_future()  # until it is cancelled
        finally:
            self._indexing.close()

    async def _index_all(self) -> None:
        while not self._draining.is_set():
            self._has_new_files.clear()
            try:
                job = await self._store.vector_stores.take_job()
            except StoreUnavailable as error:
                logger.debug("file search: %s", error)
                job = None
            if job is not None:
                await self._run(job)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._has_new_files.wait()

    async def drain(self) -> None:
        """Stops the indexing and gives the file back."""
        self._draining.set()
        self._has_new_files.set()
        if self._current is not None:
            self._current.cancel()
            await asyncio.wait([self._current])

    async def _run(self, job: IndexJob) -> None:
        """Indexes a file. A cancellation gives it back."""
        self._current = asyncio.create_task(self._index(job), name=f"indexing of {job.file_id}")
        beating = asyncio.create_task(self._beat())
        try:
            await asyncio.wait([self._current])
        finally:
            beating.cancel()
            self._current.cancel()
            self._current = None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_EVERY_S)
            with suppress(StoreUnavailable):
                await self._store.beat()

    async def _index(self, job: IndexJob) -> None:
        try:
            await self._index_once(job)
        except asyncio.CancelledError:
            with suppress(StoreUnavailable):  # the lease ends by itself
                await asyncio.shield(self._store.vector_stores.release(job.number))
            raise
        except StoreUnavailable as error:
            logger.debug("file search: %s", error)
            await asyncio.sleep(_WAIT_S)
            with suppress(StoreUnavailable):
                await self._store.vector_stores.release(job.number)

    async def _index_once(self, job: IndexJob) -> None:
        """Indexes a file, or notes why it cannot be indexed. Raises StoreUnavailable."""
        vector_stores = self._store.vector_stores
        try:
            if job.num_tries > _MAX_TRIES:
                raise UnreadableFile("server_error", "the server ended while it read this file")
            if await self._indexing.index(job):
                logger.info("the file %s of %s is indexed", job.file_id, job.store_id)
        except StoreUnavailable:
            raise
        except FileNotFound:
            logger.debug("the file %s was deleted before it was indexed", job.file_id)
        except UnreadableFile as error:
            await vector_stores.fail(job.number, error.file_code, str(error))
        except STOPS:
            raise
        except OuzelError as error:
            logger.warning("the file %s cannot be indexed: %s", job.file_id, error)
            await vector_stores.fail(job.number, "server_error", str(error))
        except Exception:  # nobody awaits it, and later files must not wait for ever
            logger.exception("unexpected error in the indexing of %s", job.file_id)
            await vector_stores.fail(job.number, "server_error", "the server has made an error")
