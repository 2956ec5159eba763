"""PDFs are read and rendered by a limited process, where pypdfium2 is installed.

Whatever PDFium makes of a file, it takes no longer than the time and no more than the memory that it may.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import TypeVar

from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint
from ouzel.limited_process import JobEnded, Limits, MemoryLimitExceeded, TimeLimitExceeded
from ouzel.prompts.media.document import Document, PdfFile, Size, read_document
from ouzel.prompts.media.document_job import Page, ReadSizes, RenderPage, Sizes, Task
from ouzel.prompts.media.file_process import FileProcess
from ouzel.prompts.media.picture import PictureLimits

_JOB = "ouzel.prompts.media.document_job:create_document_job"
READING_BYTES = 256 * 2**20  # of memory, for tables and objects of the file
_RENDERING_BYTES = (
    384 * 2**20
)  # and for what pages show, on its way: an image that gets none is left out
_BYTES_PER_PIXEL = 32  # rendered, packed, encoded, sent, received, and what is made of it

Kind = TypeVar("Kind", Sizes, Page)


class Documents:
    """Is called from many threads."""

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
        """Reads the sizes of all pages. Raises InvalidRequest, EngineUnavailable."""
        path = file.path
        if not can_read_documents():
            raise InvalidRequest(
                f"must not be given: to read PDFs this server needs its extra pdf ({install_hint('pdf')})",
                field=path,
            )
        task = ReadSizes(file.data, self._max_images)
        found = self._run(
            task, Limits(wall_s=self._timeout_s, memory_bytes=READING_BYTES), path, Sizes
        )
        if not found.num_pages:
            raise InvalidRequest("must be a PDF with pages, given one without", field=path)
        if found.num_pages > self._max_images:
            raise too_many_pages(self._max_images, self._max_images, found.num_pages, path)
        return read_document(file, found.sizes, self._limits)

    def page(self, document: Document, number: int, left_s: float) -> bytes:
        """Returns uint8 [height, width, 3], of the page's size. `left_s` is > 0. Raises as `read`."""
        size = document.pages[number]
        limits = Limits(wall_s=left_s, memory_bytes=self.num_bytes(size))
        return self._run(
            RenderPage(document.file.data, number, size), limits, document.file.path, Page
        ).pixels

    @staticmethod
    def num_bytes(size: Size) -> int:
        """Returns what a page of this size may take."""
        return _RENDERING_BYTES + size[0] * size[1] * _BYTES_PER_PIXEL

    def _run(self, task: Task, limits: Limits, path: str, kind: type[Kind]) -> Kind:
        own = replace(limits, memory_bytes=limits.memory_bytes + 3 * len(task.data))
        return self._process.run(task, own, path, kind, lambda ended: self._reason(ended, limits))

    def _reason(self, ended: JobEnded, limits: Limits) -> str:
        memory = f"rendered within {limits.memory_bytes // 2**20} MiB of memory"
        match ended:
            case TimeLimitExceeded():
                return _slow(self._timeout_s)
            case MemoryLimitExceeded():
                return f"that is {memory}"
            case _:  # where it gets no memory, PDFium may end its process in other ways
                return f"that is whole, and {memory}"


def can_read_documents() -> bool:
    """Tells whether the extra is installed."""
    return find_spec("pypdfium2") is not None


def too_slow(limit_s: float, path: str) -> InvalidRequest:
    return InvalidRequest(f"must be a PDF {_slow(limit_s)}", field=path)


def _slow(limit_s: float) -> str:
    return f"that is rendered in <= {limit_s:g} s (pdf_timeout_s)"


def too_many_pages(max_pages: int, max_images: int, num_pages: int, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be a PDF of <= {max_pages} pages: a request has <= {max_images} pictures (max_images), of which each "
        f"page is one, given {num_pages}",
        field=path,
    )
