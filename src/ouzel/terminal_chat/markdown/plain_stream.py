"""Text that is no Markdown flows as it comes: reasoning, JSON, or everything where a user wants it so."""

from rich.text import Text

from ouzel.terminal_chat.markdown.flow import Flow, whole_words


class PlainStream:
    def __init__(self, flow: Flow, style: str = "") -> None:
        self._flow = flow
        self._style = style
        self._rest = ""  # of a word that may go on

    def feed(self, text: str) -> None:
        if not whole_words(
            text
        ):  # what has come of a long word is not looked at again with each piece
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
        """Ends the last line, if there is one."""
        self._words(self._rest)
        self._rest = ""
        if not self._flow.is_at_begin:
            self._flow.end_line()

    def _words(self, text: str) -> None:
        self._flow.words(Text(text.replace("\t", "    "), style=self._style))
