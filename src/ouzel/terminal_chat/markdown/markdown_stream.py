"""Draws Markdown while it streams, line by line, and the words of a line as soon as possible.

Rules
1. Drawn text is final. A line is held back until its first characters show its kind. Words are held
   back until open marks before them are closed (`inline_markdown.py`). A line of code or of a table
   is held back until it is complete.
2. Line breaks stay: models write line breaks on purpose, as in addresses and verses, more often
   than they fill paragraphs.
3. Decisions are made only after a blank, a line end or a wide character. The drawn text therefore
   does not depend on the pieces in which the text arrives.
"""

import re
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from ouzel.terminal_chat.markdown.code_block import CodeBlock
from ouzel.terminal_chat.markdown.flow import Flow, units
from ouzel.terminal_chat.markdown.inline_markdown import inline_text, settled
from ouzel.terminal_chat.markdown.table_rows import TableRows, is_delimiter

_FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*")
_RULE = re.compile(r"\s{0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})")
_BEGIN = re.compile(r"(?P<indent>\s*)(?P<mark>#{1,6} +|(?:> ?)+|[-*+] +|\d{1,9}[.)] +)?(?=\S)")
# The beginning of a line whose kind is not known yet.
_UNDECIDED = re.compile(r"\s*(?:#{1,6} *|(?:> ?)+|[-*+_~`\s]*|(?:`{3}|~{3}).*|\d{1,9}[.)]? *)")
_MAX_INDENT = 16


@dataclass(frozen=True, slots=True)
class _Fence:
    indent: int
    mark: str
    code: CodeBlock

    def is_closed_by(self, line: str) -> bool:
        text = line.strip()
        return text.startswith(self.mark) and not text.strip(self.mark[0])


class MarkdownStream:
    def __init__(self, console: Console, flow: Flow) -> None:
        self._console = console
        self._flow = flow
        self._unit = ""  # a partial word at the end of the text
        self._rest = ""  # text of the line before `_unit` that is not drawn yet
        self._style: str | None = None  # style of the line that is being drawn; None between lines
        self._fence: _Fence | None = None
        self._head = ""  # a line that may be the head of a table
        self._table: TableRows | None = None
        self._is_spaced = True  # the last drawn line is empty, or nothing is drawn yet

    def feed(self, text: str) -> None:
        whole = units(text)
        if not whole:  # a long partial word is not read again with each piece
            self._unit += text
            return
        length = sum(map(len, whole))
        whole[0] = self._unit + whole[0]
        self._unit = text[length:]
        for unit in whole:
            self._rest += unit
            if unit.endswith("\n"):
                line, self._rest = self._rest[:-1], ""
                self._whole(line)
            else:
                self._draw_settled()

    def finish(self) -> None:
        """Draws the text that is held back; the text is complete."""
        rest, self._rest, self._unit = self._rest + self._unit, "", ""
        if rest or self._style is not None:
            self._whole(rest)
        self._end_table()
        self._fence = None

    def _draw_settled(self) -> None:
        """Draws the settled words of the unfinished line."""
        if self._style is None:
            line = self._rest
            if self._fence or self._head or self._table or line.startswith("|"):
                return
            if _UNDECIDED.fullmatch(line):
                return
            self._rest = self._begin(line)
        length = settled(self._rest)
        self._flow.words(inline_text(self._rest[:length], self._style or ""))
        self._rest = self._rest[length:]

    def _whole(self, line: str) -> None:
        if self._style is not None:
            self._flow.words(inline_text(line, self._style))
            self._flow.end_line()
            self._style = None
        elif self._fence is not None:
            self._code(self._fence, line)
        elif not self._is_of_table(line):
            self._line(line)

    def _line(self, line: str) -> None:
        if not line.strip():
            self._blank()
        elif (match := _FENCE.fullmatch(line)) is not None:
            self._fence = _Fence(len(match[1]), match[2], CodeBlock(match[3]))
            self._show(Text(line, "dim"))
        elif _RULE.fullmatch(line):
            self._show(Text("─" * min(self._flow.columns, 40), "dim"))
        else:
            self._whole(self._begin(line))

    def _begin(self, line: str) -> str:
        """Draws the mark of a line, and returns the text after the mark."""
        match = _BEGIN.match(line)
        assert match is not None, "the line is not empty"
        mark = (match["mark"] or "").strip()
        indent = " " * min(len(match["indent"].expandtabs(4)), _MAX_INDENT)
        self._style, self._is_spaced = "", False
        if mark.startswith("#"):
            self._style = "bold underline" if mark == "#" else "bold"
            begin, later = Text(), Text()
        elif mark.startswith(">"):
            self._style = "italic"
            begin = later = Text("│ " * mark.count(">"), "dim")
        elif mark:
            begin = Text(f"{indent}{'•' if mark in '-*+' else mark} ")
            later = Text(" " * begin.cell_len)
        else:
            begin = later = Text(indent)
        self._flow.begin_line(begin, later)
        return line[match.end() :]

    def _code(self, fence: _Fence, line: str) -> None:
        if fence.is_closed_by(line):
            self._fence = None
            self._show(Text(line, "dim"))
            return
        code = line[min(fence.indent, len(line) - len(line.lstrip())) :]
        self._show(Text(" " * fence.indent) + fence.code.add(code.expandtabs(4)))

    def _is_of_table(self, line: str) -> bool:
        """Draws or holds back a line of a table; returns False for a line without a bar in front.

        Lines are a table if the second line is a delimiter such as `|---|`.
        """
        is_row = line.lstrip().startswith("|")
        if self._table is not None and is_row:
            self._lines(self._table.add(line, self._flow.columns))
            return True
        if self._head and is_delimiter(line):
            self._table, self._head = TableRows(self._console, self._head, line), ""
            return True
        self._end_table()
        if is_row:
            self._head = line
        return is_row

    def _end_table(self) -> None:
        if self._table is not None:
            self._lines(self._table.finish(self._flow.columns))
            self._table = None
        if self._head:
            head, self._head = self._head, ""
            self._line(head)

    def _lines(self, lines: list[Text]) -> None:
        for line in lines:
            self._show(line)

    def _show(self, line: Text) -> None:
        self._flow.whole_line(line)
        self._is_spaced = False

    def _blank(self) -> None:
        if not self._is_spaced:
            self._flow.end_line()
            self._is_spaced = True
