"""Draws the rows of a table as they arrive; the head and the first row set the column widths."""

import re
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from ouzel.terminal_chat.markdown.inline_markdown import inline_text

_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_MIN_WIDTH = 3
_MAX_ROOM = 8  # a column may be so many cells wider than its first texts
_CELL_END = re.compile(r"(?<!\\)\|")
Alignment = Literal["left", "center", "right"]


def is_delimiter(line: str) -> bool:
    """Tells whether a line is the line of hyphens between the head and the rows of a table."""
    return "-" in line and "|" in line and _DELIMITER.fullmatch(line) is not None


class TableRows:
    def __init__(self, console: Console, head: str, delimiter: str) -> None:
        self._console = console
        self._head = _cells(head)
        self._alignments = [_alignment(cell) for cell in _cells(delimiter)]
        self._widths: list[int] | None = None  # None until the first row arrives

    def add(self, line: str, columns: int) -> list[Text]:
        """Returns the lines of a row; for the first row the lines of the head come before."""
        cells = (_cells(line) + [""] * len(self._head))[: len(self._head)]
        return [*self._begin(cells, columns), *self._row(cells, "")]

    def finish(self, columns: int) -> list[Text]:
        """Returns the lines of the head if the table has no rows, else nothing."""
        return self._begin([""] * len(self._head), columns)

    def _begin(self, first: Sequence[str], columns: int) -> list[Text]:
        if self._widths is not None:
            return []
        self._widths = _widths([self._head, first], columns)
        rule = Text("─┼─".join("─" * width for width in self._widths), "dim")
        return [*self._row(self._head, "bold"), rule]

    def _row(self, cells: Sequence[str], style: str) -> list[Text]:
        assert self._widths is not None
        columns = [
            inline_text(cell, style).wrap(self._console, width) or [Text()]
            for cell, width in zip(cells, self._widths, strict=True)
        ]
        lines = []
        for at in range(max(map(len, columns))):
            parts = [
                self._part(column[at] if at < len(column) else Text(), n)
                for n, column in enumerate(columns)
            ]
            lines.append(Text.assemble((" │ ", "dim")).join(parts))
        return lines

    def _part(self, text: Text, column: int) -> Text:
        assert self._widths is not None
        part = text.copy()
        part.rstrip()
        alignment = self._alignments[column] if column < len(self._alignments) else "left"
        part.align(alignment, self._widths[column])
        return part


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(inner)]


def _alignment(delimiter: str) -> Alignment:
    if delimiter.endswith(":"):
        return "center" if delimiter.startswith(":") else "right"
    return "left"


def _widths(rows: Sequence[Sequence[str]], columns: int) -> list[int]:
    """Divides the columns of the terminal in proportion to the lengths of the texts in `rows`."""
    needs = [
        max(_MIN_WIDTH, *(inline_text(cell).cell_len for cell in cells))
        for cells in zip(*rows, strict=True)
    ]
    room = columns - 3 * (len(needs) - 1)
    total = sum(needs)
    if total <= room:
        return [need + min(_MAX_ROOM, (room - total) * need // total) for need in needs]
    return [max(_MIN_WIDTH, room * need // total) for need in needs]
