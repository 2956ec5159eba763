"""Colours lines of code one by one, in the context of the lines before them."""

from rich.syntax import Syntax
from rich.text import Text

_MAX_LINES_BEFORE = 40  # earlier lines that are read again for each line


class CodeBlock:
    def __init__(self, language: str) -> None:
        self._syntax = Syntax("", language or "text", theme="ansi_dark")
        self._lines: list[str] = []

    def add(self, line: str) -> Text:
        """Returns the coloured line, with exactly the characters of `line`."""
        self._lines = [*self._lines[-_MAX_LINES_BEFORE:], line]
        code = "\n".join(self._lines)
        text = self._syntax.highlight(code)
        shown = text.split("\n", allow_blank=True)[len(self._lines) - 1] if code else Text()
        return shown if shown.plain == line else Text(line)  # some lexers change blanks
