"""Loads documents from content parts and reads their texts, outside the event loop."""

import time
from collections.abc import Sequence
from functools import partial
from threading import Event

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.decoding_memory import DecodingMemory
from ouzel.prompts.media.document import OtherFile, PdfFile, check_any_file
from ouzel.prompts.media.documents import READING_BYTES, Documents
from ouzel.prompts.media.fetching.sources import find_source
from ouzel.prompts.media.file_texts import FileTexts
from ouzel.prompts.media.loader import MediaLoader, run_concurrently
from ouzel.prompts.media.parts import DocumentPart
from ouzel.worker_threads import WorkerThreads

_MAX_READERS = 2

# The texts of a PDF's pages, the text of another document, or a PDF that is kept for its pictures.
Loaded = list[str] | str | PdfFile


class TextLoader:
    """Reads the texts of documents. It belongs to one event loop."""

    def __init__(self, loader: MediaLoader, *, keeps_pdfs: bool) -> None:
        """`keeps_pdfs` returns PDFs as they are, for a model that sees their pages."""
        self._loader = loader
        self._keeps_pdfs = keeps_pdfs
        self._limits = loader.intake.limits
        self._timeout_s = loader.config.pdf_timeout_s
        self._threads = WorkerThreads("texts of documents", _MAX_READERS)
        # Documents have their own memory, so that pictures and videos do not wait for a slow one.
        self._memory = DecodingMemory(loader.config.max_media_memory_bytes)
        self._documents = Documents(self._limits, self._timeout_s, loader.config.max_images)
        self._texts = FileTexts(self._timeout_s)

    async def load(
        self, parts: Sequence[DocumentPart], *, max_chars: int, chars_per_page: int
    ) -> dict[str, Loaded]:
        """Returns the texts of each distinct document, by its URL.

        The limits of characters and time are for all documents together. Raises InvalidRequest or
        Overloaded.
        """
        distinct = {part.url: part for part in reversed(parts)}
        files = await run_concurrently([self._file(part) for part in distinct.values()])
        is_abandoned = Event()

        def read() -> list[Loaded]:
            found, left, left_s = list[Loaded](), max_chars, self._timeout_s
            for file in files:
                if self._keeps_pdfs and isinstance(file, PdfFile):
                    found.append(file)
                    continue
                with self._memory.hold(READING_BYTES):
                    begin_s = time.monotonic()
                    if left_s <= 0 or is_abandoned.is_set():
                        raise _too_slow(self._timeout_s, file.path)
                    texts = self._read(file, left, chars_per_page, left_s)
                    left_s -= time.monotonic() - begin_s
                if texts is None:
                    raise _too_long(max_chars, file.path)
                left -= _count_chars(texts, chars_per_page)
                found.append(texts)
            return found

        try:
            return dict(zip(distinct, await self._threads.run(read), strict=True))
        finally:
            is_abandoned.set()

    def _read(
        self, file: PdfFile | OtherFile, max_chars: int, chars_per_page: int, left_s: float
    ) -> list[str] | str | None:
        """Returns None if the text has more than `max_chars` characters."""
        if isinstance(file, PdfFile):
            return self._documents.read_texts(file, max_chars, chars_per_page, left_s)
        return self._texts.read(file, max_chars, left_s)

    async def _file(self, part: DocumentPart) -> PdfFile | OtherFile:
        intake = self._loader.intake
        source = await intake.run(partial(find_source, part))
        check = partial(check_any_file, path=part.path, limits=self._limits)
        file = await intake.read(source, part.path, check)
        self._loader.held_bytes.add(file, len(file.data))
        return file

    def close(self) -> None:
        """Ends the threads and the processes without waiting for running jobs."""
        self._threads.close()
        self._documents.close()
        self._texts.close()


def _count_chars(texts: list[str] | str, chars_per_page: int) -> int:
    if isinstance(texts, str):
        return len(texts)
    return sum(map(len, texts)) + chars_per_page * len(texts)


def _too_slow(limit_s: float, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a document that is read in <= {limit_s:g} s (pdf_timeout_s), with all documents "
        "of a request together",
        field=path,
    )


def _too_long(max_chars: int, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a document within <= {max_chars} characters of text, in all documents of a "
        "request together",
        field=path,
    )
