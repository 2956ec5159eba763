"""Texts are read from uploads of several types; broken and hostile files are refused."""

import io
import zipfile
from collections.abc import Iterator

import docx
import pytest

from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.hosted_tools.file_search.extraction import Extractor
from ouzel.limited_process import Limits
from tests.file_text.word_files import make_package
from tests.hosted_tools.test_page_texts import make_pdf

HTML = b"""<html><head><title>T</title><style>p {}</style></head><body><nav>Menu</nav>
<h1>Seals</h1><p>Seals &amp; <b>herring</b>.</p><ul><li>one<li>two</ul>
<table><tr><td>a<td>b</table><pre>x  =  1</pre><script>alert(1)</script></body></html>"""


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    extractor = Extractor(Limits(wall_s=600.0, cpu_s=600.0, memory_bytes=2**30))
    yield extractor
    extractor.close()


def make_docx() -> bytes:
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_heading("Costs", 2)
    document.add_paragraph("Rent is high.")
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Rent", "900"
    data = io.BytesIO()
    document.save(data)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.md", b"# A\n\nText", "# A\n\nText"),
        ("a", "Köln".encode(), "Köln"),
        ("a.txt", "Köln".encode("cp1252"), "Köln"),
        ("a.txt", "Köln".encode("utf-16"), "Köln"),
        ("a.json", b'{"a": 1}', '{"a": 1}'),
        ("a.pdf", make_pdf("Otters hold hands"), "Otters hold hands"),
        ("a.docx", make_docx(), "# Report\n\n## Costs\n\nRent is high.\n\nRent | 900"),
    ],
)
async def test_a_text_is_read(extractor: Extractor, name: str, data: bytes, expected: str) -> None:
    assert (await extractor.read_text(name, data)).strip() == expected


async def test_html_becomes_text_with_headings(extractor: Extractor) -> None:
    text = await extractor.read_text("a.html", HTML)
    assert "# Seals" in text
    assert "Seals & herring." in text
    assert "- one\n- two" in text
    assert "x  =  1" in text
    assert "alert" not in text
    assert "Menu" in text


def make_bomb() -> bytes:
    """Makes a DOCX whose text is unpacked to 3 GiB."""
    data = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(make_docx())) as good,
        zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb,
    ):
        for name in good.namelist():
            if name != "word/document.xml":
                bomb.writestr(name, good.read(name))
        piece = b" " * 2**20
        with bomb.open("word/document.xml", "w", force_zip64=True) as file:
            for _ in range(3 * 2**10):
                file.write(piece)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("a.bin", bytes(range(256)), "unsupported_file"),
        ("a.png", b"\x89PNG\r\n\x1a\n" + bytes(100), "unsupported_file"),
        ("a.zip", make_package({"a.txt": "Text"}), "unsupported_file"),
        ("a.docx", b"PK\x03\x04 and more", "invalid_file"),
        ("a.docx", b"no archive", "invalid_file"),
        ("a.pdf", b"%PDF-1.7 broken", "invalid_file"),
        ("a.txt", b"  \n ", "invalid_file"),
    ],
)
async def test_an_unreadable_file_is_named(
    extractor: Extractor, name: str, data: bytes, code: str
) -> None:
    with pytest.raises(UnreadableFile) as caught:
        await extractor.read_text(name, data)
    assert caught.value.file_code == code
    assert await extractor.read_text("a.txt", b"still alive") == "still alive"


async def test_a_bomb_ends_the_reading_process_alone(extractor: Extractor) -> None:
    with pytest.raises(UnreadableFile) as caught:
        await extractor.read_text("bomb.docx", make_bomb())
    assert caught.value.file_code == "invalid_file"
    assert await extractor.read_text("a.txt", b"still alive") == "still alive"
