"""Text flows into a terminal word by word, and what is written is never touched again.

So nothing flickers, whatever has scrolled away is whole, and a window that changes its width in the middle of an answer
changes nothing but where later lines end. Whoever writes gives whole words: only they can be put on the next line.
"""

import re
from itertools import pairwise

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

_MIN_COLUMNS = 8  # for words, however far they are indented
_MAX_COLUMNS = 100  # longer lines are hard to read
_WIDE = "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6"
_WORD = re.compile(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+")
_UNIT_END = re.compile(rf"[\s{_WIDE}]")


def whole_words(text: str) -> int:
    """Returns how much of the text cannot grow at its end any more."""
    return sum(map(len, units(text)))


def units(text: str) -> list[str]:
    """Cuts text behind every blank, line end and wide character; what may still grow is left out."""
    ends = [match.end() for match in _UNIT_END.finditer(text)]
    return [text[begin:end] for begin, end in pairwise([0, *ends])]


class Flow:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._column = 0
        self._unwritten = Text()  # goes out in one piece with what comes at the same time
        self._indent = Text()  # of lines that words are moved to
        self._space = Text()  # before the next word, if it stays on this line
        self._has_words = False  # on this line

    @property
    def columns(self) -> int:
        """The terminal is asked each time, for it may have changed."""
        return min(self._console.width, _MAX_COLUMNS)

    @property
    def is_at_begin(self) -> bool:
        return self._column == 0

    def begin_line(self, begin: Text, indent: Text) -> None:
        """Writes what stands before the first words; `indent` is before those that do not fit."""
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
        """Writes a line as it is, which the terminal may break."""
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
        """Breaks a word that no line could hold."""
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
