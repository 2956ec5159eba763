"""Writes Word files by hand."""

import io
import zipfile
from collections.abc import Mapping

_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    f'<Override PartName="/word/document.xml" ContentType="{_MAIN}"/></Types>'
)
_STYLES = (
    '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="Chapter"/>'
    '<w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
)
_ENCRYPTED = 1  # a flag of an entry
_LOCAL, _CENTRAL = (b"PK\x03\x04", 6), (b"PK\x01\x02", 8)  # headers, and the places of flags
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def make_package(parts: Mapping[str, str]) -> bytes:
    """Returns an archive with these parts."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


def paragraph(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{properties}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def make_word_file(body: str, prologue: str = "", **parts: str) -> bytes:
    """Returns a Word file. `parts` are the contents of further parts by their names."""
    document = f"<w:document {_NAMESPACE}><w:body>{body}</w:body></w:document>"
    further = {
        f"word/{name}.xml": f"<w:{name} {_NAMESPACE}>{content}</w:{name}>"
        for name, content in {"styles": _STYLES, **parts}.items()
    }
    main = {"word/document.xml": prologue + document}
    return make_package({"[Content_Types].xml": _TYPES, **main, **further})


def encrypt_entries(data: bytes) -> bytes:
    """Returns an archive whose entries say that they need a password."""
    changed = bytearray(data)
    for magic, shift in (_LOCAL, _CENTRAL):
        at = changed.find(magic)
        while at >= 0:
            changed[at + shift] |= _ENCRYPTED
            at = changed.find(magic, at + 1)
    return bytes(changed)


LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
