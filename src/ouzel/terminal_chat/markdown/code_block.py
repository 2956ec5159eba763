"""Lines of code are coloured one by one, by what the lines before them began."""

from rich.syntax import Syntax
from rich.text import Text

_MAX_LINES_BEFORE = 40  # that are read again for each line


class CodeBlock:
    def __init__(self, language: str) -> None:
        self._syntax = Syntax("", language or "text", theme="ansi_dark")
        self._lines: list[str] = []

    def add(self, line: str) -> Text:
        """Returns the line as it is shown; it can be copied as it is."""
        self._lines = [*self._lines[-_MAX_LINES_BEFORE:], line]
        code = "\n".join(self._lines)
        text = self._syntax.highlight(code)
        shown = text.split("\n", allow_blank=True)[len(self._lines) - 1] if code else Text()
        return shown if shown.plain == line else Text(line)  # a lexer may change blanks
