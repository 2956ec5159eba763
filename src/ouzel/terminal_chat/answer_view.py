"""Draws an answer while it streams: the reasoning dimmed, then the content."""

from rich.console import Console

from ouzel.terminal.harmless import harmless
from ouzel.terminal_chat.answer import Answer, Piece
from ouzel.terminal_chat.markdown.flow import Flow
from ouzel.terminal_chat.markdown.markdown_stream import MarkdownStream
from ouzel.terminal_chat.markdown.plain_stream import PlainStream
from ouzel.terminal_chat.terminal import Terminal

_WAITING = "…"
_ERASE_LINE = "\r\x1b[K"
_NOTES = {
    "length": "the answer ends here: max_tokens or the context is used up",
    "content_filter": "the server's filter ended the answer",
}


class AnswerView:
    """Draws one answer; shows "…" until the first text arrives."""

    def __init__(self, console: Console, *, is_markdown: bool) -> None:
        self._console = console
        self._terminal = Terminal(console)
        self._is_markdown = is_markdown
        self._begin()
        self._is_waiting = console.is_terminal and not console.is_dumb_terminal
        self._wait(_WAITING)

    def _begin(self) -> None:
        """Begins a text: the whole answer, or the text that follows the call of a tool."""
        self._flow = Flow(self._console)
        self._reasoning = PlainStream(self._flow, "dim")
        self._content = (
            MarkdownStream(self._console, self._flow)
            if self._is_markdown
            else PlainStream(self._flow)
        )
        self._has_reasoning = False
        self._has_content = False

    def show(self, piece: Piece) -> None:
        for note in piece.notes:
            self._end_text()
            self._begin()
            if note.arguments is None:
                self._terminal.show_result(note.result)
            else:
                self._terminal.show_call(note.name, note.arguments)
        reasoning, content = harmless(piece.reasoning), harmless(piece.content)
        if not self._has_reasoning:
            reasoning = reasoning.lstrip("\n")
        if not self._has_content:
            content = content.lstrip("\n")
        if reasoning or content:
            self._end_wait()
        if reasoning:
            self._has_reasoning = True
            self._reasoning.feed(reasoning)
        if content:
            self._begin_content()
            self._content.feed(content)

    def finish(self, answer: Answer) -> None:
        """Shows the rest of the text, and a note if the answer ended early."""
        self._end_text()
        note = "stopped" if answer.is_stopped else _NOTES.get(answer.finish_reason or "", "")
        if note:
            self._console.print(f"({note})", style="yellow", markup=False)

    def break_off(self) -> None:
        """Ends the line, so that an error message can follow on the next line."""
        self._end_text()

    def _end_text(self) -> None:
        self._end_wait()
        (self._content if self._has_content else self._reasoning).finish()

    def _begin_content(self) -> None:
        if not self._has_content and self._has_reasoning:
            self._reasoning.finish()
            self._console.print()
        self._has_content = True

    def _wait(self, text: str) -> None:
        if self._is_waiting:
            self._console.file.write(text)
            self._console.file.flush()

    def _end_wait(self) -> None:
        if self._is_waiting:
            self._wait(_ERASE_LINE)
            self._is_waiting = False
