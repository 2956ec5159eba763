"""Word files become text with headings, tables and notes; hostile files are refused."""

import pytest

from ouzel.file_text.packages import Package, UnreadablePackage
from ouzel.file_text.word_text import find_main_part, read_word
from tests.file_text.word_files import LAUGHS, encrypt_entries, make_word_file, paragraph


def read(data: bytes, max_chars: int = 10**6) -> str:
    package = Package(data)
    main_part = find_main_part(package)
    assert main_part is not None
    return read_word(package, main_part, max_chars)


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


CELL = "<w:tc>{}</w:tc>"
AMOUNT = paragraph("900") + paragraph("a month")
ROW = f"<w:tr>{CELL.format(paragraph('Rent'))}{CELL.format(AMOUNT)}</w:tr>"
CASES = {
    "headings": (
        paragraph("Plan", "T") + paragraph("Costs", "H2") + paragraph("Rent", "Own"),
        "# Plan\n\n## Costs\n\n### Rent",
    ),
    "an outline level of a paragraph": (
        f'<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr>{run("Plan")}</w:p>',
        "# Plan",
    ),
    "runs, tabs and breaks": (
        f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{run('a')}<w:r><w:tab/></w:r>{run('b')}"
        f"<w:r><w:br/></w:r>{run('c')}<w:r><w:noBreakHyphen/></w:r>{run('d')}</w:p>",
        "a\tb\nc-d",
    ),
    "empty paragraphs": (paragraph("a") + "<w:p/>" + paragraph(" ") + paragraph("b"), "a\n\nb"),
    "a table": (f"<w:tbl>{ROW}{ROW}</w:tbl>", "Rent | 900\na month\nRent | 900\na month"),
    "a table in a cell": (
        f"<w:tbl><w:tr>{CELL.format(f'<w:tbl>{ROW}</w:tbl><w:p/>')}{CELL.format(paragraph('b'))}"
        "</w:tr></w:tbl>",
        "Rent | 900\na month | b",
    ),
    "a link and a content control": (
        f"<w:sdt><w:sdtContent><w:p><w:hyperlink>{run('a')}</w:hyperlink>"
        f"<w:sdt><w:sdtContent>{run('b')}</w:sdtContent></w:sdt></w:p></w:sdtContent></w:sdt>",
        "ab",
    ),
    "tracked changes": (
        f"<w:p><w:ins>{run('new')}</w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        f"<w:moveFrom>{run('moved')}</w:moveFrom></w:p><w:p><w:moveTo>{run('moved')}</w:moveTo></w:p>",
        "new\n\nmoved",
    ),
    "a field": (
        f"<w:p><w:r><w:instrText>PAGE</w:instrText></w:r>{run('7')}</w:p>",
        "7",
    ),
    "a text box": (
        f"<w:p>{run('around')}<w:r><x><w:txbxContent>{paragraph('boxed')}</w:txbxContent></x>"
        f"<Fallback>{paragraph('boxed')}</Fallback></w:r></w:p>",
        "boxed\n\naround",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_body_is_read(case: str) -> None:
    body, expected = CASES[case]
    assert read(make_word_file(body)) == expected


def test_notes_stand_below_the_text() -> None:
    def refer(kind: str) -> str:
        return f'<w:p>{run("Owls")}<w:r><w:{kind}Reference w:id="2"/></w:r></w:p>'

    def note(kind: str) -> str:
        separator = f'<w:{kind} w:type="separator" w:id="0"><w:p>{run("-")}</w:p></w:{kind}>'
        return f'{separator}<w:{kind} w:id="2"><w:p>{run(f"A {kind}")}</w:p></w:{kind}>'

    data = make_word_file(
        refer("footnote") + refer("endnote"),
        footnotes=note("footnote"),
        endnotes=note("endnote"),
    )

    assert read(data) == "Owls[^2]\n\nOwls[^e2]\n\n[^2]: A footnote\n\n[^e2]: A endnote"


def test_reading_stops_soon_after_the_limit_of_characters() -> None:
    data = make_word_file(paragraph("owl " * 25) * 1000)
    assert 1000 < len(read(data, 1000)) < 2000


REFUSED = {
    "an entity": (make_word_file("", LAUGHS), "the file has a document type declaration"),
    "a password": (encrypt_entries(make_word_file("")), "the file needs a password"),
    "no end": (make_word_file(paragraph("a"))[:-30], "the file is broken"),
    "no XML": (make_word_file("<w:p>"), "the file is broken"),
    "no archive": (b"PK\x03\x04 and more", "the file is broken"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_hostile_file_is_refused(fault: str) -> None:
    data, reason = REFUSED[fault]
    with pytest.raises(UnreadablePackage, match=reason):
        read(data)


def test_a_bomb_is_not_unpacked_beyond_the_limit() -> None:
    data = make_word_file(" " * 10**6 + paragraph("a"))
    package = Package(data, max_xml_bytes=10**6)
    with pytest.raises(UnreadablePackage, match="must unpack to <= 1000000 bytes of XML"):
        read_word(package, "word/document.xml", 10**6)
