"""Reads the text of Word files: headings, paragraphs, tables, text boxes and notes.

Headings become lines with `#`, as in Markdown; the cells of a row stand in one line. Deleted text
of tracked changes is left out, inserted text is part of the text.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from ouzel.file_text.packages import Package

CONTENT_TYPES = "[Content_Types].xml"
_MAIN_END = "main+xml"  # end of the content type of a package's main part
_MAX_HEADING = 6
_NOT_A_HEADING = 10  # outline level of plain text is 9, counted from 0
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
# `moveFrom` is the old place of a moved text; `Fallback` repeats a text box for older programs.
_SKIPPED = frozenset({"moveFrom", "Fallback", "pPrChange", "tabs"})
_NOTES = {"footnoteReference": "", "endnoteReference": "e"}  # the marks of notes differ
_NO_NOTES = frozenset({"separator", "continuationSeparator", "continuationNotice"})


def find_main_part(package: Package) -> str | None:
    """Returns the name of a Word file's main part; None for a package of another kind.

    Raises UnreadablePackage.
    """
    if not package.has(CONTENT_TYPES):
        return None
    found: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("ContentType", "")
        if tag == "Override" and kind.endswith(_MAIN_END) and "word" in kind:
            found.append(attributes.get("PartName", "").lstrip("/"))

    package.read_part(CONTENT_TYPES, start)
    return found[0] if found else None


def read_word(package: Package, main_part: str, max_chars: int) -> str:
    """Returns the text, or slightly more than `max_chars` characters of a longer one.

    Raises UnreadablePackage.
    """
    folder = main_part.rpartition("/")[0]
    depths = _read_depths(package, f"{folder}/styles.xml")
    body = _Reader(depths, max_chars)
    _read(package, main_part, body)
    blocks = body.blocks
    for part, mark in (("footnotes", ""), ("endnotes", "e")):
        name = f"{folder}/{part}.xml"
        if package.has(name) and body.num_chars <= max_chars:
            notes = _Reader(depths, max_chars - body.num_chars, note_mark=mark)
            _read(package, name, notes)
            blocks += notes.blocks
    return "\n\n".join(blocks)


def _read(package: Package, name: str, reader: "_Reader") -> None:
    with suppress(_Enough):
        package.read_part(name, reader.start, reader.end, reader.add)


def _read_depths(package: Package, name: str) -> dict[str, int]:
    """Returns the depths of headings by the ids of their styles."""
    depths: dict[str, int] = {}
    style = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal style
        value = attributes.get("val", "")
        if tag == "style":
            style = attributes.get("styleId", "")
        elif tag == "name" and value.lower() == "title":
            depths[style] = 1
        elif tag == "outlineLvl" and (depth := _read_depth(value)):
            depths.setdefault(style, depth)
        elif tag == "name" and (depth := _read_depth(value.lower().removeprefix("heading "), 0)):
            depths[style] = depth

    if package.has(name):
        package.read_part(name, start)
    return depths


def _read_depth(number: str, shift: int = 1) -> int:
    """Returns the depth of a heading; 0 if the number is none of a heading."""
    if not (number.isascii() and number.isdecimal() and len(number) == 1):
        return 0
    depth = int(number) + shift
    return 0 if depth >= _NOT_A_HEADING else min(depth, _MAX_HEADING)


class _Enough(Exception):
    """Ends the reading of a text beyond the limit of characters."""


@dataclass(slots=True)
class _Paragraph:
    pieces: list[str] = field(default_factory=list)
    depth: int = 0


@dataclass(slots=True)
class _Table:
    rows: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    cell: list[str] = field(default_factory=list)  # paragraphs of the open cell


class _Reader:
    """Collects the blocks of a part. Tables may be in cells, and text boxes in paragraphs."""

    def __init__(self, depths: dict[str, int], max_chars: int, note_mark: str = "") -> None:
        self._depths = depths
        self._left = max_chars
        self._note_mark = note_mark
        self.blocks: list[str] = []
        self.num_chars = 0
        self._paragraphs: list[_Paragraph] = []
        self._tables: list[_Table] = []
        self._num_skipped = 0  # open elements whose content is left out
        self._is_text = False
        self._note = ""  # the mark of the note that begins

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self._num_skipped or tag in _SKIPPED:
            self._num_skipped += 1
        elif tag == "t":
            self._is_text = True
        elif tag == "p":
            self._paragraphs.append(_Paragraph())
            if self._note:
                self._add(self._note)
                self._note = ""
        elif tag == "tbl":
            self._tables.append(_Table())
        elif tag in ("footnote", "endnote"):
            self._start_note(attributes)
        elif self._paragraphs:
            self._start_in_paragraph(tag, attributes)

    def _start_note(self, attributes: dict[str, str]) -> None:
        if attributes.get("type") in _NO_NOTES:
            self._num_skipped += 1
        else:
            self._note = f"[^{self._note_mark}{attributes.get('id', '')}]: "

    def _start_in_paragraph(self, tag: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if tag in _CHARACTERS:
            self._add(_CHARACTERS[tag])
        elif tag in _NOTES:
            self._add(f"[^{_NOTES[tag]}{attributes.get('id', '')}]")
        elif tag == "pStyle":
            self._paragraphs[-1].depth = self._depths.get(value, 0)
        elif tag == "outlineLvl":
            self._paragraphs[-1].depth = _read_depth(value)

    def end(self, tag: str) -> None:
        if self._num_skipped:
            self._num_skipped -= 1
        elif tag == "t":
            self._is_text = False
        elif tag == "p" and self._paragraphs:
            self._end_paragraph(self._paragraphs.pop())
        elif self._tables:
            self._end_in_table(tag)

    def _end_in_table(self, tag: str) -> None:
        table = self._tables[-1]
        if tag == "tc":
            table.cells.append("\n".join(table.cell))
            table.cell = []
        elif tag == "tr":
            table.rows.append(" | ".join(table.cells))
            table.cells = []
        elif tag == "tbl":
            self._tables.pop()
            self._add_block("\n".join(table.rows))

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.pieces).strip()
        if text:
            self._add_block(f"{'#' * paragraph.depth} {text}" if paragraph.depth else text)

    def _add_block(self, text: str) -> None:
        blocks = self._tables[-1].cell if self._tables else self.blocks
        blocks.append(text)

    def add(self, text: str) -> None:
        """Adds characters of the part."""
        if self._is_text and not self._num_skipped and self._paragraphs:
            self._add(text)

    def _add(self, text: str) -> None:
        self._paragraphs[-1].pieces.append(text)
        self.num_chars += len(text)
        if self.num_chars > self._left:
            self._end_early()

    def _end_early(self) -> None:
        """Ends the reading; the blocks that have begun are part of the text."""
        for paragraph in self._paragraphs:
            self.blocks.append("".join(paragraph.pieces))
        for table in self._tables:
            self.blocks += [*table.rows, *table.cells, *table.cell]
        raise _Enough
