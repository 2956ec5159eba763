"""Reads texts in the limited process: plain texts, HTML, PDF and DOCX."""

from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import msgspec

from ouzel.file_text.html_text import read_html
from ouzel.file_text.packages import Package, UnreadablePackage
from ouzel.file_text.pdf_text import read_page_texts
from ouzel.file_text.tasks import FileText, Outcome, ReadFile, TooLong, Unreadable
from ouzel.file_text.word_text import find_main_part, read_word

_HTML = frozenset({".html", ".htm", ".xhtml"})
_PDF_MAGIC, _ZIP_MAGIC = b"%PDF-", b"PK\x03\x04"
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # files of Office before 2007, and encrypted ones
_SIGNS_OF_TEXT = frozenset({*range(0x20, 0x100), 0x09, 0x0A, 0x0C, 0x0D, 0x1B, 0x08})
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_MAX_CONTROLS = 0.01  # the part of the first bytes that may be no text
_PROBE_BYTES = 65536

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
        return TooLong()
    if not text.strip():
        return Unreadable("the file has no text", is_supported=True)
    return FileText(text.encode(errors="replace").decode())


def _read(file: ReadFile) -> str:
    suffix = PurePosixPath(file.filename).suffix.lower()
    if file.data.startswith(_PDF_MAGIC):
        return "\n\n".join(_read_pdf(file.data, file.max_chars))
    if file.data.startswith(_ZIP_MAGIC):
        return _read_package(file.data, file.max_chars)
    if file.data.startswith(_OLE_MAGIC):
        raise _CannotRead(
            "the file is encrypted, or of a format of Office before 2007", is_supported=False
        )
    if suffix == ".docx":
        raise _CannotRead("the file is broken")
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


def _read_package(data: bytes, max_chars: int) -> str:
    try:
        package = Package(data)
        main_part = find_main_part(package)
        if main_part is None:
            raise _CannotRead("archives and files of this type cannot be read", is_supported=False)
        return read_word(package, main_part, max_chars)
    except UnreadablePackage as error:
        raise _CannotRead(str(error)) from None
