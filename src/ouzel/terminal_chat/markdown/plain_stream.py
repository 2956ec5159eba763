"""Draws plain text while it streams: reasoning, JSON, or all text after /markdown off."""

from rich.text import Text

from ouzel.terminal_chat.markdown.flow import Flow, whole_words


class PlainStream:
    def __init__(self, flow: Flow, style: str = "") -> None:
        self._flow = flow
        self._style = style
        self._rest = ""  # a partial word at the end of the text

    def feed(self, text: str) -> None:
        if not whole_words(text):  # a long partial word is not read again with each piece
            self._rest += text
            return
        *lines, rest = (self._rest + text).split("\n")
        for line in lines:
            self._words(line)
            self._flow.end_line()
        length = whole_words(rest)
        self._words(rest[:length])
        self._rest = rest[length:]

    def finish(self) -> None:
        """Draws the rest and ends the last line, if it has text."""
        self._words(self._rest)
        self._rest = ""
        if not self._flow.is_at_begin:
            self._flow.end_line()

    def _words(self, text: str) -> None:
        self._flow.words(Text(text.replace("\t", "    "), style=self._style))
