"""Reads texts in the limited process: plain texts, HTML, PDF and DOCX.

No other module imports python-docx. Headings become lines with `#`, as in Markdown.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import msgspec

from ouzel.file_text.html_text import read_html
from ouzel.file_text.pdf_text import read_page_texts
from ouzel.file_text.tasks import FileText, Outcome, ReadFile, Unreadable

_HTML = frozenset({".html", ".htm", ".xhtml"})
_PDF_MAGIC, _ZIP_MAGIC = b"%PDF-", b"PK\x03\x04"
_SIGNS_OF_TEXT = frozenset({*range(0x20, 0x100), 0x09, 0x0A, 0x0C, 0x0D, 0x1B, 0x08})
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_MAX_CONTROLS = 0.01  # the part of the first bytes that may be no text
_PROBE_BYTES = 65536
_MAX_HEADING = 6

_decode = msgspec.msgpack.Decoder(ReadFile).decode


class _CannotRead(Exception):
    def __init__(self, reason: str, *, is_supported: bool = True) -> None:
        super().__init__(reason)
        self.outcome = Unreadable(reason, is_supported)


def create_text_job() -> Callable[[bytes], bytes]:
    return lambda encoded: msgspec.msgpack.encode(_run(_decode(encoded)))


def _run(file: ReadFile) -> Outcome:
    try:
        text = _read(file)
    except _CannotRead as error:
        return error.outcome
    if len(text) > file.max_chars:
        reason = f"the text must have <= {file.max_chars} characters, it has {len(text)}"
        return Unreadable(reason, is_supported=True)
    if not text.strip():
        return Unreadable("the file has no text", is_supported=True)
    return FileText(text.encode(errors="replace").decode())


def _read(file: ReadFile) -> str:
    suffix = PurePosixPath(file.filename).suffix.lower()
    if file.data.startswith(_PDF_MAGIC):
        return "\n\n".join(_read_pdf(file.data, file.max_chars))
    if suffix == ".docx":
        return "\n\n".join(_read_docx(file.data))
    if file.data.startswith(_ZIP_MAGIC):
        raise _CannotRead("archives and files of this type cannot be read", is_supported=False)
    text = _decode_text(file.data)
    return read_html(text) if suffix in _HTML else text


def _decode_text(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    probe = data[:_PROBE_BYTES]
    num_controls = sum(byte not in _SIGNS_OF_TEXT for byte in probe)
    if b"\0" in data or num_controls > _MAX_CONTROLS * len(probe):
        raise _CannotRead("the file is not a text", is_supported=False)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _read_pdf(data: bytes, max_chars: int) -> Iterator[str]:
    import pypdfium2  # noqa: PLC0415  an extra, and only PDFs need it

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError:
        raise _CannotRead("the PDF is broken or needs a password") from None
    num_chars = 0
    for text in read_page_texts(document):
        num_chars += len(text)
        yield text
        if num_chars > max_chars:
            return


def _read_docx(data: bytes) -> Iterator[str]:
    import docx  # noqa: PLC0415  an extra, and only DOCX files need it
    from docx.table import Table  # noqa: PLC0415

    try:
        document = docx.Document(io.BytesIO(data))
    except Exception:  # the package raises errors of zipfile, lxml and its own
        raise _CannotRead("the DOCX file is broken") from None
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            rows = [" | ".join(cell.text for cell in row.cells) for row in block.rows]
            yield "\n".join(rows)
            continue
        text = block.text.strip()
        if text:
            style = (block.style.name or "") if block.style is not None else ""
            depth = _read_depth(style)
            yield f"{'#' * depth} {text}" if depth else text


def _read_depth(style: str) -> int:
    """Returns the depth of a heading by the name of its style; 0 for other paragraphs."""
    if style == "Title":
        return 1
    number = style.removeprefix("Heading ")
    return min(int(number), _MAX_HEADING) if style != number and number.isdecimal() else 0
