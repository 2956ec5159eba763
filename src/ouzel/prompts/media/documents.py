"""Reads and renders PDFs, and reads their texts, in a limited process, with pypdfium2.

Time and memory of the process are limited, because PDFium reads untrusted files.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import TypeVar

from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint
from ouzel.limited_process import JobEnded, Limits, MemoryLimitExceeded, TimeLimitExceeded
from ouzel.prompts.media.document import Document, PdfFile, Size, read_document
from ouzel.prompts.media.document_job import (
    Page,
    ReadSizes,
    ReadTexts,
    RenderPage,
    Sizes,
    Task,
    Texts,
)
from ouzel.prompts.media.file_process import FileProcess
from ouzel.prompts.media.picture import PictureLimits

_JOB = "ouzel.prompts.media.document_job:create_document_job"
READING_BYTES = 256 * 2**20  # memory for tables and objects of the file
# Memory for intermediate data of a page; an image that does not fit is left out.
_RENDERING_BYTES = 384 * 2**20
_BYTES_PER_PIXEL = 32  # each pixel: rendered, packed, encoded, sent, received, converted

Kind = TypeVar("Kind", Sizes, Page, Texts)


class Documents:
    """Reads PDFs in one limited process. It is called from many threads."""

    def __init__(self, limits: PictureLimits, timeout_s: float, max_images: int) -> None:
        self._limits = limits
        self._timeout_s = timeout_s
        self._max_images = max_images
        self._process = FileProcess(
            _JOB, "PDF", Limits(wall_s=timeout_s, memory_bytes=READING_BYTES)
        )

    def close(self) -> None:
        self._process.close()

    def read(self, file: PdfFile) -> Document:
        """Reads the sizes of all pages. Raises InvalidRequest or EngineUnavailable."""
        path = file.path
        _check_extra(path)
        task = ReadSizes(file.data, self._max_images)
        limits = Limits(wall_s=self._timeout_s, memory_bytes=READING_BYTES)
        found = self._run(task, limits, path, Sizes)
        if not found.num_pages:
            raise InvalidRequest("must be a PDF with pages, given a PDF without pages", field=path)
        if found.num_pages > self._max_images:
            raise too_many_pages(self._max_images, self._max_images, found.num_pages, path)
        return read_document(file, found.sizes, self._limits)

    def page(self, document: Document, number: int, left_s: float) -> bytes:
        """Renders one page and returns its pixels, uint8 [height, width, 3].

        `left_s` is the remaining time in seconds, > 0. Raises the same errors as `read`.
        """
        size = document.pages[number]
        limits = Limits(wall_s=left_s, memory_bytes=self.num_bytes(size))
        task = RenderPage(document.file.data, number, size)
        return self._run(task, limits, document.file.path, Page).pixels

    def read_texts(
        self, file: PdfFile, max_chars: int, chars_per_page: int, left_s: float
    ) -> list[str] | None:
        """Returns the text of each page; None if they have more than `max_chars` characters.

        Each page counts `chars_per_page` besides. Raises the same errors as `read`.
        """
        path = file.path
        _check_extra(path)
        task = ReadTexts(file.data, max_chars, chars_per_page)
        limits = Limits(wall_s=left_s, memory_bytes=READING_BYTES)
        found = self._run(task, limits, path, Texts)
        return found.texts if found.is_whole else None

    @staticmethod
    def num_bytes(size: Size) -> int:
        """Returns the memory for rendering a page of this size."""
        return _RENDERING_BYTES + size[0] * size[1] * _BYTES_PER_PIXEL

    def _run(self, task: Task, limits: Limits, path: str, kind: type[Kind]) -> Kind:
        own = replace(limits, memory_bytes=limits.memory_bytes + 3 * len(task.data))
        done = "read" if isinstance(task, ReadTexts) else "rendered"
        return self._process.run(
            task, own, path, kind, lambda ended: self._reason(ended, limits, done)
        )

    def _reason(self, ended: JobEnded, limits: Limits, done: str) -> str:
        memory = f"{done} within {limits.memory_bytes // 2**20} MiB of memory"
        match ended:
            case TimeLimitExceeded():
                return _slow(self._timeout_s, done)
            case MemoryLimitExceeded():
                return f"that is {memory}"
            case _:  # PDFium without memory may end its process in other ways, too
                return f"that is complete, and {memory}"


def can_read_documents() -> bool:
    """Tells whether the extra `pdf` is installed."""
    return find_spec("pypdfium2") is not None


def too_slow(limit_s: float, path: str) -> InvalidRequest:
    return InvalidRequest(f"must be a PDF {_slow(limit_s, 'rendered')}", field=path)


def _slow(limit_s: float, done: str) -> str:
    return f"that is {done} in <= {limit_s:g} s (pdf_timeout_s)"


def _check_extra(path: str) -> None:
    if not can_read_documents():
        raise InvalidRequest(
            "must not be given: to read PDFs this server needs its extra pdf "
            f"({install_hint('pdf')})",
            field=path,
        )


def too_many_pages(max_pages: int, max_images: int, num_pages: int, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a PDF of <= {max_pages} pages: a request has <= {max_images} pictures "
        f"(max_images) and each page is one, given {num_pages}",
        field=path,
    )
