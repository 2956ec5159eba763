"""Opens a PDF with PDFium, in a limited process: returns the sizes of its pages, the pixels of one,
or the texts of all.

PDFium gets only the bytes: it opens no address and no file, not even fonts of the system, and it
has no JavaScript. Forms are rendered with their values. No other module imports pypdfium2, the
extra `pdf`.
"""

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

import msgspec

from ouzel.file_text.pdf_text import read_page_texts
from ouzel.prompts.media.file_process import Refused

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument


# An empty list of font paths: it ends at the first NULL. PDFium keeps the pointer.
_NO_PATHS = (ctypes.POINTER(ctypes.c_char) * 1)()


class ReadSizes(msgspec.Struct, frozen=True, tag="sizes"):
    data: bytes
    max_pages: int


class RenderPage(msgspec.Struct, frozen=True, tag="page"):
    data: bytes
    number: int  # the first page is 0
    size: tuple[int, int]  # width and height in pixels


class ReadTexts(msgspec.Struct, frozen=True, tag="texts"):
    data: bytes
    max_chars: int  # limit for all pages together
    chars_per_page: int  # counted for each page besides its text


class Sizes(msgspec.Struct, frozen=True, tag="sizes"):
    num_pages: int
    # width and height of each page in points, as it is shown; empty if there are too many pages
    sizes: list[tuple[float, float]]


class Page(msgspec.Struct, frozen=True, tag="page"):
    pixels: bytes  # uint8 [height, width, 3]


class Texts(msgspec.Struct, frozen=True, tag="texts"):
    texts: list[str]  # a text for each page; empty for a page without text
    is_whole: bool  # False: reading stopped at the limit of characters


Task = ReadSizes | RenderPage | ReadTexts
Outcome = Sizes | Page | Texts | Refused


def create_document_job() -> Callable[[bytes], bytes]:
    """Returns a function that runs an encoded Task and returns its encoded Outcome."""
    import pypdfium2  # noqa: F401, PLC0415  an extra
    from PIL import Image  # noqa: F401, PLC0415  so that the first job does not wait for it

    _disable_system_fonts()

    def run(encoded: bytes) -> bytes:
        return msgspec.msgpack.encode(_outcome(msgspec.msgpack.decode(encoded, type=Task)))

    return run


def _disable_system_fonts() -> None:
    """Makes pages look the same on every machine: text without a font in the file gets PDFium's
    own.
    """
    from pypdfium2 import raw  # noqa: PLC0415  an extra

    raw.FPDF_DestroyLibrary()
    raw.FPDF_InitLibraryWithConfig(raw.FPDF_LIBRARY_CONFIG(version=2, m_pUserFontPaths=_NO_PATHS))


def _outcome(task: Task) -> Outcome:
    from pypdfium2 import PdfDocument, PdfiumError, raw  # noqa: PLC0415  an extra

    try:
        document = PdfDocument(task.data)
        document.init_forms()
        match task:
            case ReadSizes():
                return _sizes(document, task.max_pages)
            case RenderPage():
                return _page(document, task)
            case ReadTexts():
                return _texts(document, task)
            case _:
                assert_never(task)
    except PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            return Refused("without a password, given an encrypted file")
        return Refused("that is complete, given a file that is cut off or broken")


def _sizes(document: "PdfDocument", max_pages: int) -> Sizes:
    num_pages = len(document)
    sizes: list[tuple[float, float]] = []
    if num_pages <= max_pages:
        sizes = [document.get_page_size(number) for number in range(num_pages)]
    return Sizes(num_pages, sizes)


def _texts(document: "PdfDocument", task: ReadTexts) -> Texts:
    texts, left = list[str](), task.max_chars
    for text in read_page_texts(document):
        left -= len(text) + task.chars_per_page
        if left < 0:
            return Texts(texts, is_whole=False)
        # A broken font may give halves of characters, which UTF-8 does not have.
        texts.append(text.encode(errors="replace").decode())
    return Texts(texts, is_whole=True)


def _page(document: "PdfDocument", task: RenderPage) -> Page:
    from pypdfium2 import PdfBitmap, raw  # noqa: PLC0415  an extra

    page, (width, height) = document[task.number], task.size
    bitmap = PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR, rev_byteorder=True)
    bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
    place, flags = (0, 0, width, height, 0), raw.FPDF_ANNOT | raw.FPDF_REVERSE_BYTE_ORDER
    raw.FPDF_RenderPageBitmap(bitmap, page, *place, flags)
    if document.formenv is not None:
        raw.FPDF_FFLDraw(document.formenv, bitmap, page, *place, flags)
    return Page(bitmap.to_pil().tobytes())
