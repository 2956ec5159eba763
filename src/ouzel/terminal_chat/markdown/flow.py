"""Writes text to a terminal word by word, and never changes text that is written.

Nothing flickers, and text that has scrolled away is complete. A change of the width of the window
affects later lines only. Callers pass whole words, because only a whole word can be moved to the
next line.
"""

import re
from itertools import pairwise

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

_MIN_COLUMNS = 8  # least room for words, also behind a wide indent
_MAX_COLUMNS = 100  # longer lines are hard to read
# Ranges of characters that are two columns wide.
_WIDE = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f"
    "\uff00-\uff60\uffe0-\uffe6"
)
_WORD = re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")
_UNIT_END = re.compile(rf"[\s{_WIDE}]")


def whole_words(text: str) -> int:
    """Returns the length of the text up to its last unit, without a word that may still grow."""
    return sum(map(len, units(text)))


def units(text: str) -> list[str]:
    """Cuts text after each blank, line end and wide character; leaves out a last partial word."""
    ends = [match.end() for match in _UNIT_END.finditer(text)]
    return [text[begin:end] for begin, end in pairwise([0, *ends])]


class Flow:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._column = 0
        self._unwritten = Text()  # text that the next flush writes in one piece
        self._indent = Text()  # indent of continuation lines
        self._space = Text()  # space before the next word, dropped at a line break
        self._has_words = False  # the current line has words

    @property
    def columns(self) -> int:
        """Returns the columns for text; the width of the terminal may change at any time."""
        return min(self._console.width, _MAX_COLUMNS)

    @property
    def is_at_begin(self) -> bool:
        return self._column == 0

    def begin_line(self, begin: Text, indent: Text) -> None:
        """Writes the beginning of a line; `indent` begins its continuation lines."""
        self._write(begin)
        self._indent = indent

    def words(self, text: Text) -> None:
        """Writes text without line ends."""
        for match in _WORD.finditer(text.plain):
            word = text[match.start() : match.end()]
            if match[0].isspace():
                self._space.append_text(word)
            else:
                self._word(word)
        self._flush("")

    def end_line(self) -> None:
        self._flush("\n")
        self._column = 0
        self._space, self._indent = Text(), Text()
        self._has_words = False

    def whole_line(self, text: Text) -> None:
        """Writes a line without breaking it; the terminal may break it."""
        self._write(text)
        self.end_line()

    def _word(self, word: Text) -> None:
        needed = self._space.cell_len + word.cell_len
        if self._has_words and self._column + needed > self.columns:
            indent = self._indent
            self.end_line()
            self.begin_line(indent, indent)
        elif self._has_words or not self._column:
            self._write(self._space)
        self._space = Text()
        self._write_long(word)

    def _write_long(self, word: Text) -> None:
        """Writes a word, broken into parts if it is longer than a line."""
        room = max(self.columns - self._indent.cell_len, _MIN_COLUMNS)
        if word.cell_len <= room:
            self._write(word)
        else:
            at = 0
            for part in chop_cells(word.plain, room):
                if at:
                    indent = self._indent
                    self.end_line()
                    self.begin_line(indent, indent)
                self._write(word[at : at + len(part)])
                at += len(part)
        self._has_words = True

    def _write(self, text: Text) -> None:
        if text:
            self._unwritten.append_text(text)
            self._column += cell_len(text.plain)

    def _flush(self, end: str) -> None:
        if self._unwritten or end:
            self._console.print(self._unwritten, end=end, soft_wrap=True)
            self._unwritten = Text()
