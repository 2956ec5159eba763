"""The terminal shows what is said to the user, and asks questions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ouzel.terminal.harmless import harmless, harmless_line
from ouzel.terminal_chat.keyboard import Keyboard

if TYPE_CHECKING:
    from ouzel.terminal_chat.line_editor import LineEditor

_MAX_RESULT = 500  # characters of a tool's result that are shown


class Terminal:
    def __init__(
        self, console: Console, editor: "LineEditor | None" = None, keyboard: Keyboard | None = None
    ) -> None:
        """Without an editor nothing can be asked, and without a keyboard nothing is done about keys."""
        self.console = console
        self._editor = editor
        self._keyboard = keyboard

    def say(self, text: str) -> None:
        self._print(text, "dim")

    def complain(self, text: str) -> None:
        self._print(text, "red")

    def ask(self, question: str) -> str:
        """Returns what the user answers, in lower case; nothing where nobody answers."""
        if self._editor is None:
            return ""
        if self._keyboard is not None:
            self._keyboard.forget()
        return self._editor.ask(question)

    def lent(self) -> AbstractContextManager[None]:
        """Is for a program that may read the keyboard itself."""
        return nullcontext() if self._keyboard is None else self._keyboard.ordinary()

    def show_pairs(self, pairs: Mapping[str, str]) -> None:
        """Shows two columns."""
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column()
        for left, right in pairs.items():
            table.add_row(Text(left), Text(right, "dim"))
        self.console.print(table)

    def show_call(self, name: str, arguments: str) -> None:
        self.console.print(Text(f"⚙ {harmless_line(name)}({harmless_line(arguments)})", "cyan"))

    def show_result(self, result: str) -> None:
        """Shows its beginning; the model gets all of it."""
        shown = (
            result
            if len(result) <= _MAX_RESULT
            else f"{result[:_MAX_RESULT]}… ({len(result)} characters)"
        )
        self._print(shown, "dim")

    def _print(self, text: str, style: str) -> None:
        self.console.print(Text(harmless(text), style))
