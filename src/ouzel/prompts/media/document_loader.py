"""Loads PDFs from content parts and renders their pages, outside the event loop."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.decoding_memory import DecodingMemory
from ouzel.prompts.media.document import Document, PdfFile, check_file
from ouzel.prompts.media.documents import (
    READING_BYTES,
    Documents,
    too_many_pages,
    too_slow,
)
from ouzel.prompts.media.fetching.sources import find_source
from ouzel.prompts.media.loader import MediaLoader, run_concurrently
from ouzel.prompts.media.parts import DocumentPart
from ouzel.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from PIL.Image import Image

Result = TypeVar("Result")

_MAX_RENDERERS = 2


class DocumentLoader:
    """Loads PDFs and renders them. It belongs to one event loop."""

    def __init__(self, loader: MediaLoader) -> None:
        self._loader = loader
        self._limits = loader.intake.limits
        self._max_images = loader.config.max_images
        self._timeout_s = loader.config.pdf_timeout_s
        self._threads = WorkerThreads("documents", _MAX_RENDERERS)
        # PDFs have their own memory, so that pictures and videos do not wait for a slow PDF.
        self._memory = DecodingMemory(loader.config.max_media_memory_bytes)
        self._documents = Documents(self._limits, self._timeout_s, self._max_images)

    async def load(self, parts: Sequence[DocumentPart], *, num_pictures: int) -> list[Document]:
        """Returns a document for each part of a request, in order.

        `num_pictures` is the number of pictures beside the PDFs. Parts with the same text are
        loaded once. Raises InvalidRequest or Overloaded.
        """
        if num_pictures + len(parts) > self._max_images:
            raise InvalidRequest(
                f"must be one of <= {self._max_images} pictures in a request (max_images); each "
                f"page of a PDF is a picture, given {num_pictures} and {len(parts)} PDFs",
                field=parts[max(self._max_images - num_pictures, 0)].path,
            )
        distinct = {part.url: part for part in reversed(parts)}
        loaded = await run_concurrently([self._document(part) for part in distinct.values()])
        by_url = dict(zip(distinct, loaded, strict=True))
        documents = [by_url[part.url] for part in parts]
        left = self._max_images - num_pictures
        for part, document in zip(parts, documents, strict=True):
            if len(document.pages) > left:
                raise too_many_pages(left, self._max_images, len(document.pages), part.path)
            left -= len(document.pages)
        return documents

    async def _file(self, part: DocumentPart) -> PdfFile:
        intake = self._loader.intake
        source = await intake.run(partial(find_source, part))
        check = partial(check_file, path=part.path, limits=self._limits)
        file = await intake.read(source, part.path, check)
        self._loader.held_bytes.add(file, len(file.data))
        return file

    async def _document(self, part: DocumentPart) -> Document:
        file = await self._file(part)

        def read() -> Document:
            with self._memory.hold(READING_BYTES):
                return self._documents.read(file)

        return await self._threads.run(read)

    async def render(
        self, document: Document, numbers: Sequence[int], prepare: "Callable[[Image], Result]"
    ) -> list[Result]:
        """Returns the results of `prepare`, which runs in a thread, for these pages in RGB.

        Raises InvalidRequest.
        """
        is_abandoned = Event()

        def render() -> list[Result]:
            made, left_s = list[Result](), self._timeout_s
            for number in numbers:
                with self._memory.hold(self._documents.num_bytes(document.pages[number])):
                    begin_s = time.monotonic()
                    if left_s <= 0 or is_abandoned.is_set():
                        raise too_slow(self._timeout_s, document.file.path)
                    made.append(prepare(self._page(document, number, left_s)))
                    left_s -= time.monotonic() - begin_s
            return made

        try:
            return await self._threads.run(render)
        finally:
            is_abandoned.set()

    def _page(self, document: Document, number: int, left_s: float) -> "Image":
        from PIL import Image  # noqa: PLC0415  only requests with documents need it

        return Image.frombytes(
            "RGB", document.pages[number], self._documents.page(document, number, left_s)
        )

    def close(self) -> None:
        """Ends the threads and the process without waiting for running jobs."""
        self._threads.close()
        self._documents.close()
