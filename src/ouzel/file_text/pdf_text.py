"""Reads the texts of the pages of a PDF that PDFium has opened; only limited processes do so."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument


def read_page_texts(document: "PdfDocument") -> Iterator[str]:
    """Yields the text of each page, in the order of the pages; empty for a page without text.

    A page is closed before the next one is opened, so that long documents need little memory.
    """
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").strip()
        page.close()
        yield text
