"""Extracts the text of a PDF with PDFium, in a limited process. PDFium gets only the bytes."""

from collections.abc import Callable

import msgspec

from ouzel.file_text.pdf_text import read_page_texts
from ouzel.hosted_tools.web_search.readable_job import MAX_CHARS, MAX_TITLE, ReadableText


def create_pdf_text_job() -> Callable[[bytes], bytes]:
    """Returns a function from the bytes of a PDF to an encoded ReadableText."""
    from pypdfium2 import PdfDocument  # noqa: PLC0415  an extra

    def run(data: bytes) -> bytes:
        document = PdfDocument(data)
        texts: list[str] = []
        num_chars = 0
        for text in read_page_texts(document):
            texts.append(text)
            num_chars += len(text)
            if num_chars > MAX_CHARS:
                break
        title = document.get_metadata_value("Title").strip()
        whole = "\n\n".join(texts)[:MAX_CHARS]
        return msgspec.msgpack.encode(ReadableText(title[:MAX_TITLE], whole))

    return run
